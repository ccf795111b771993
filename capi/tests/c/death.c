/* A peer is killed: every operation that names it ends within the limit, at both
 * devices, and what is with others goes on. */
#include "check.h"

#define LIMIT_S 1.0

static double killed_at;

/* Tells the other process that it may die now, and waits until it has. */
static void kill_peer(int socket)
{
    char byte = 1;
    CHECK(send(socket, &byte, 1, MSG_NOSIGNAL) == 1);
    /* Nothing but the end comes. */
    CHECK(recv(socket, &byte, 1, 0) <= 0);
    killed_at = seconds();
}

static void be_killed(int socket)
{
    char byte;
    CHECK(recv(socket, &byte, 1, 0) == 1);
    kill(getpid(), SIGKILL);
}

static void at_the_endpoint(int rank, int socket)
{
    enum { BYTES = 4 << 20 };
    lmt_peer peer, myself;
    lmt_endpoint *endpoint = connect_endpoint(socket, NULL, &peer);
    lmt_request receive, send, local;
    char *out = calloc(BYTES, 1), into[8], mine[8];
    bool done;
    if (rank == 0)
        OK(lmt_send(endpoint, peer, 1, "hello", 5, 0));
    else
        OK(lmt_recv(endpoint, peer, 1, 0, into, 8, NULL));
    if (rank == 1)
        be_killed(socket);
    myself = insert_oneself(endpoint);
    OK(lmt_irecv(endpoint, myself, 3, 0, mine, 8, &local));
    OK(lmt_irecv(endpoint, peer, 2, 0, into, 8, &receive));
    OK(lmt_isend(endpoint, peer, 2, out, BYTES, 0, &send));
    kill_peer(socket);
    GIVES(LMT_ERR_PEER_DEAD, lmt_wait(endpoint, receive, -1, NULL));
    GIVES(LMT_ERR_PEER_DEAD, lmt_wait(endpoint, send, -1, NULL));
    CHECK(seconds() - killed_at < LIMIT_S);
    CHECK(strstr(lmt_last_error(), "has died"));
    GIVES(LMT_ERR_PEER_DEAD, lmt_send(endpoint, peer, 2, out, 5, 0));
    GIVES(LMT_ERR_PEER_DEAD, lmt_recv(endpoint, peer, 2, 0, into, 5, NULL));
    OK(lmt_test(endpoint, local, &done, NULL));
    CHECK(!done);
    OK(lmt_send(endpoint, myself, 3, "others", 6, 0));
    OK(lmt_wait(endpoint, local, -1, NULL));
    OK(lmt_peer_remove(endpoint, peer));
    GIVES(LMT_ERR_UNKNOWN_PEER, lmt_peer_remove(endpoint, peer));
    OK(lmt_endpoint_close(endpoint));
    free(out);
}

static int packets;

static int to_nowhere(void *context, lmt_peer to, const void *packet, size_t bytes)
{
    (void)context, (void)to, (void)packet, (void)bytes;
    packets++;
    return LMT_OK;
}

static void at_the_device(int rank, int socket)
{
    lmt_peer peer;
    lmt_device *device = connect_device(socket, to_nowhere, NULL, &peer);
    lmt_request send;
    bool is_connected = false, done = false;
    char *out = calloc(1 << 20, 1);
    struct iovec part = {out, 1 << 20};
    lmt_code code = LMT_OK;
    while (!is_connected) {
        OK(lmt_device_progress(device, NULL));
        OK(lmt_device_peer(device, peer, &is_connected, NULL));
    }
    if (rank == 1) {
        /* The other connects meanwhile. */
        char byte;
        while (recv(socket, &byte, 1, MSG_DONTWAIT) != 1)
            OK(lmt_device_progress(device, NULL));
        kill(getpid(), SIGKILL);
    }
    OK(lmt_device_send(device, peer, NULL, 0, &part, 1, 0, &send));
    kill_peer(socket);
    while (!done) {
        OK(lmt_device_progress(device, NULL));
        code = lmt_device_test(device, send, &done, NULL);
    }
    CHECK(code == LMT_ERR_PEER_DEAD && seconds() - killed_at < LIMIT_S);
    GIVES(LMT_ERR_PEER_DEAD, lmt_device_peer(device, peer, NULL, NULL));
    GIVES(LMT_ERR_PEER_DEAD, lmt_device_send(device, peer, NULL, 0, &part, 1, 0, &send));
    lmt_arrival arrival;
    GIVES(LMT_ERR_BAD_PACKET, lmt_device_on_packet(device, peer, "\0\0\0", 3, &arrival));
    OK(lmt_device_close(device));
    free(out);
}

/* Nobody was ever there. */
static void unreachable(void)
{
    lmt_options *options;
    lmt_endpoint *endpoint, *gone;
    lmt_peer peer;
    struct address address;
    OK(lmt_options_create(&options));
    OK(lmt_options_set(options, "connect_timeout_ms", "100"));
    OK(lmt_endpoint_create(options, &endpoint));
    OK(lmt_endpoint_create(NULL, &gone));
    OK(lmt_endpoint_address(gone, address.bytes, sizeof address.bytes, &address.length));
    OK(lmt_endpoint_close(gone));
    OK(lmt_peer_insert(endpoint, address.bytes, address.length, &peer));
    double start = seconds();
    GIVES(LMT_ERR_PEER_UNREACHABLE, lmt_send(endpoint, peer, 1, "x", 1, 0));
    CHECK(seconds() - start < LIMIT_S);
    OK(lmt_endpoint_close(endpoint));
    OK(lmt_options_destroy(options));
}

int main(void)
{
    alarm(TIME_LIMIT_S);
    unreachable();
    return run_pair(at_the_endpoint, 2) || run_pair(at_the_device, 2);
}
