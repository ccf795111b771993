/*
 * The other way in: a device layer that has packets and matching of its own and has
 * lmt move its large messages only.
 *
 *     cc -o own_packets own_packets.c $(pkg-config --cflags --libs lmt)
 *     ./own_packets
 *
 * Two ranks share a socket pair, which stands for the device's own way of carrying
 * packets. Short messages go in its packets; of a large one lmt's announcement does,
 * and the device's matching says where the message goes.
 */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <lmt.h>

enum { MESSAGES = 4, SHORT_MAX_BYTES = 1024 };
enum { HELLO, SHORT, LARGE };

struct packet {
    unsigned char kind;
    /* Of a short message. */
    uint64_t tag;
    unsigned char data[SHORT_MAX_BYTES > LMT_PACKET_MAX_BYTES ? SHORT_MAX_BYTES : LMT_PACKET_MAX_BYTES];
};
#define HEAD_BYTES offsetof(struct packet, data)

/* A posted receive; this device matches by tag alone. */
struct posted {
    uint64_t tag;
    void *into;
    size_t capacity;
    /* While lmt moves the message. */
    lmt_request request;
    int is_matched, is_done;
};

struct device {
    int socket;
    lmt_device *device;
    lmt_peer peer;
    struct posted posted[MESSAGES];
};

static void check(lmt_code code, const char *what)
{
    if (code != LMT_OK) {
        fprintf(stderr, "%s: %s (%s)\n", what, lmt_last_error(), lmt_strerror(code));
        exit(1);
    }
}

/* Whether the packet was taken; if not, there is no room now. */
static int put(int socket, const struct packet *packet, size_t bytes)
{
    if (send(socket, packet, HEAD_BYTES + bytes, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
        return 1;
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS)
        return 0;
    perror("sending a packet");
    exit(1);
}

/* What lmt calls to have a packet carried to a peer. */
static int send_packet(void *context, lmt_peer to, const void *data, size_t bytes)
{
    struct device *dev = context;
    struct packet packet = {.kind = LARGE};
    (void)to; /* There is one. */
    memcpy(packet.data, data, bytes);
    return put(dev->socket, &packet, bytes) ? LMT_OK : LMT_ERR_WOULD_BLOCK;
}

static struct posted *match(struct device *dev, uint64_t tag)
{
    for (int at = 0; at < MESSAGES; at++)
        if (dev->posted[at].tag == tag && !dev->posted[at].is_matched) {
            dev->posted[at].is_matched = 1;
            return &dev->posted[at];
        }
    fprintf(stderr, "a message with tag %llu came without a receive\n", (unsigned long long)tag);
    exit(1);
}

static void large_arrived(struct device *dev, const lmt_arrival *arrival)
{
    uint64_t tag;
    if (arrival->kind != LMT_ANNOUNCED)
        return; /* Nobody cancels here, so nothing is withdrawn. */
    memcpy(&tag, arrival->envelope, sizeof tag);
    struct posted *receive = match(dev, tag);
    struct iovec segment = {receive->into, receive->capacity};
    check(lmt_device_matched(dev->device, arrival->announcement, &segment, 1, &receive->request), "matched");
}

static void progress(struct device *dev)
{
    struct packet packet;
    ssize_t bytes;
    check(lmt_device_progress(dev->device, NULL), "progress");
    while ((bytes = recv(dev->socket, &packet, sizeof packet, MSG_DONTWAIT)) >= (ssize_t)HEAD_BYTES) {
        size_t length = (size_t)bytes - HEAD_BYTES;
        if (packet.kind == SHORT) {
            struct posted *receive = match(dev, packet.tag);
            memcpy(receive->into, packet.data, length < receive->capacity ? length : receive->capacity);
            receive->is_done = 1;
        } else if (packet.kind == LARGE) {
            lmt_arrival arrival;
            check(lmt_device_on_packet(dev->device, dev->peer, packet.data, length, &arrival), "on_packet");
            large_arrived(dev, &arrival);
        }
    }
    check(lmt_device_peer(dev->device, dev->peer, NULL, NULL), "the peer");
}

static int is_done(struct device *dev, lmt_request request)
{
    bool done;
    check(lmt_device_test(dev->device, request, &done, NULL), "a transfer");
    return done;
}

static void wait_for(struct device *dev, struct posted *receive)
{
    while (!receive->is_done) {
        progress(dev);
        if (!receive->is_done && !lmt_request_is_null(receive->request))
            receive->is_done = is_done(dev, receive->request);
    }
}

static void send_short(struct device *dev, uint64_t tag, const void *data, size_t bytes)
{
    struct packet packet = {.kind = SHORT, .tag = tag};
    size_t unsent;
    memcpy(packet.data, data, bytes);
    /* In order with the announcements before it. */
    for (;;) {
        check(lmt_device_peer(dev->device, dev->peer, NULL, &unsent), "the peer");
        if (unsent == 0 && put(dev->socket, &packet, bytes))
            return;
        progress(dev);
    }
}

static void device_init(struct device *dev, int socket)
{
    struct packet hello = {.kind = HELLO};
    size_t length;
    memset(dev, 0, sizeof *dev);
    dev->socket = socket;
    check(lmt_device_create(NULL, send_packet, dev, &dev->device), "creating the device");
    check(lmt_device_address(dev->device, hello.data, sizeof hello.data, &length), "the address");
    if (send(socket, &hello, HEAD_BYTES + length, 0) < 0) {
        perror("sending the address");
        exit(1);
    }
    ssize_t bytes = recv(socket, &hello, sizeof hello, 0);
    if (bytes <= (ssize_t)HEAD_BYTES || hello.kind != HELLO) {
        fprintf(stderr, "the other rank's address has not come\n");
        exit(1);
    }
    check(lmt_device_insert_peer(dev->device, hello.data, (size_t)bytes - HEAD_BYTES, &dev->peer), "naming the peer");
}

/* Who is done first stays until the other is. */
static void device_finish(struct device *dev)
{
    struct packet packet;
    size_t unsent;
    for (;;) {
        progress(dev);
        check(lmt_device_peer(dev->device, dev->peer, NULL, &unsent), "the peer");
        if (unsent == 0)
            break;
    }
    shutdown(dev->socket, SHUT_WR);
    /* What still comes is about messages that are done. */
    while (recv(dev->socket, &packet, sizeof packet, 0) > 0)
        ;
    check(lmt_device_close(dev->device), "closing");
}

static const size_t sizes[MESSAGES] = {100, 200000, 1000, 8 << 20};

static int program(int rank, int socket)
{
    struct device dev;
    unsigned char *out[MESSAGES], *in[MESSAGES];
    lmt_request sends[MESSAGES];
    size_t total = 0;

    device_init(&dev, socket);
    for (int tag = 0; tag < MESSAGES; tag++) {
        out[tag] = malloc(sizes[tag]);
        in[tag] = calloc(sizes[tag], 1);
        if (!out[tag] || !in[tag])
            return 1;
        for (size_t at = 0; at < sizes[tag]; at++)
            out[tag][at] = (unsigned char)(at * 13 + (size_t)(rank + tag));
        dev.posted[tag] = (struct posted){.tag = (uint64_t)tag, .into = in[tag], .capacity = sizes[tag]};
    }
    for (int tag = 0; tag < MESSAGES; tag++) {
        uint64_t envelope = (uint64_t)tag;
        struct iovec segment = {out[tag], sizes[tag]};
        if (sizes[tag] <= SHORT_MAX_BYTES)
            send_short(&dev, envelope, out[tag], sizes[tag]);
        else
            check(lmt_device_send(dev.device, dev.peer, &envelope, sizeof envelope, &segment, 1, 0, &sends[tag]),
                  "beginning a send");
    }
    for (int tag = 0; tag < MESSAGES; tag++) {
        wait_for(&dev, &dev.posted[tag]);
        for (size_t at = 0; at < sizes[tag]; at++)
            if (in[tag][at] != (unsigned char)(at * 13 + (size_t)(1 - rank + tag))) {
                fprintf(stderr, "rank %d: byte %zu of message %d is wrong\n", rank, at, tag);
                return 1;
            }
        total += sizes[tag];
    }
    for (int tag = 0; tag < MESSAGES; tag++) {
        while (sizes[tag] > SHORT_MAX_BYTES && !is_done(&dev, sends[tag]))
            progress(&dev);
        free(out[tag]);
        free(in[tag]);
    }
    printf("rank %d: %d messages, %zu bytes\n", rank, MESSAGES, total);
    fflush(stdout);
    device_finish(&dev);
    return 0;
}

int main(void)
{
    int pair[2], failed = 0;
    char pid[16];
    /* Lets the ranks copy out of each other where Yama would keep them from it. */
    snprintf(pid, sizeof pid, "%ld", (long)getpid());
    setenv("LMT_LAUNCHER_PID", pid, 1);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) != 0) {
        perror("socketpair");
        return 1;
    }
    for (int rank = 0; rank < 2; rank++)
        switch (fork()) {
        case -1:
            perror("fork");
            return 1;
        case 0:
            close(pair[1 - rank]);
            exit(program(rank, pair[rank]));
        }
    close(pair[0]);
    close(pair[1]);
    for (int rank = 0; rank < 2; rank++) {
        int status;
        if (wait(&status) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
            failed = 1;
    }
    return failed;
}
