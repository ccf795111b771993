/* The second device between two processes, from C: packets over a stream socket of the
 * program's own, with a head of four bytes. */
#include "check.h"

enum { MOST = 3 << 20, ARRIVALS = 64 };

struct link {
    int socket;
    /* The next so many packets find no room, or fail. */
    int full, failing;
    lmt_device *device;
    unsigned sent;
};

static struct link the_link;
static lmt_device *device;
static lmt_peer peer;
static unsigned char *out, *in;
/* What was announced or withdrawn and nobody has taken yet. */
static lmt_arrival arrivals[ARRIVALS];
static int arrived;

static int send_packet(void *context, lmt_peer to, const void *packet, size_t bytes)
{
    struct link *link = context;
    uint32_t head = (uint32_t)bytes;
    unsigned char both[4 + LMT_PACKET_MAX_BYTES];
    bool moved;
    CHECK(lmt_peer_equal(to, peer));
    CHECK(bytes > 0 && bytes <= LMT_PACKET_MAX_BYTES);
    /* The device is in the call that calls this. */
    GIVES(LMT_ERR_BUSY, lmt_device_progress(link->device, &moved));
    GIVES(LMT_ERR_BUSY, lmt_device_close(link->device));
    if (link->full > 0) {
        link->full--;
        return LMT_ERR_WOULD_BLOCK;
    }
    if (link->failing > 0) {
        link->failing--;
        return 77;
    }
    memcpy(both, &head, 4);
    memcpy(both + 4, packet, bytes);
    CHECK(send(link->socket, both, 4 + bytes, MSG_NOSIGNAL) == (ssize_t)(4 + bytes));
    link->sent++;
    return LMT_OK;
}

static void progress(void)
{
    uint32_t head;
    unsigned char packet[LMT_PACKET_MAX_BYTES];
    lmt_code code = lmt_device_progress(device, NULL);
    CHECK(code == LMT_OK || code == LMT_ERR_CALLBACK);
    while (recv(the_link.socket, &head, 4, MSG_DONTWAIT) == 4) {
        CHECK(recv(the_link.socket, packet, head, MSG_WAITALL) == (ssize_t)head);
        CHECK(arrived < ARRIVALS);
        lmt_arrival *arrival = &arrivals[arrived];
        OK(lmt_device_on_packet(device, peer, packet, head, arrival));
        CHECK((arrival->kind == LMT_ANNOUNCED) == (arrival->announcement != NULL));
        CHECK((arrival->kind == LMT_WITHDRAWN) == (arrival->withdrawal != NULL));
        if (arrival->kind != LMT_HANDLED)
            arrived++;
    }
}

static lmt_arrival next_arrival(void)
{
    while (arrived == 0)
        progress();
    lmt_arrival first = arrivals[0];
    memmove(arrivals, arrivals + 1, (size_t)--arrived * sizeof *arrivals);
    return first;
}

static lmt_code wait_for(lmt_request request, lmt_status *status)
{
    for (;;) {
        bool done;
        lmt_code code = lmt_device_test(device, request, &done, status);
        if (done)
            return code;
        CHECK(code == LMT_OK);
        progress();
    }
}

static lmt_request send_message(uint64_t tag, void *data, size_t bytes)
{
    struct iovec parts[2] = {{data, bytes / 3}, {(char *)data + bytes / 3, bytes - bytes / 3}};
    lmt_request request;
    OK(lmt_device_send(device, peer, &tag, sizeof tag, parts, 2, LMT_HINT_WARM, &request));
    return request;
}

static lmt_request receive(lmt_announcement *announcement, void *into, size_t capacity)
{
    struct iovec part = {into, capacity};
    lmt_request request;
    OK(lmt_device_matched(device, announcement, &part, 1, &request));
    GIVES(LMT_ERR_HANDLE, lmt_device_matched(device, announcement, &part, 1, &request));
    return request;
}

static uint64_t tag_of(const lmt_arrival *arrival)
{
    uint64_t tag;
    CHECK(arrival->kind == LMT_ANNOUNCED && arrival->envelope_bytes == sizeof tag);
    CHECK(lmt_peer_equal(arrival->peer, peer));
    memcpy(&tag, arrival->envelope, sizeof tag);
    return tag;
}

/* One process sends, the other receives; some packets find no room at first, and some
 * fail. */
static void transfers(int sends)
{
    const size_t sizes[] = {1, 5000, 100001, MOST};
    for (unsigned at = 0; at < 4; at++) {
        lmt_status status;
        if (sends) {
            the_link.full = 2;
            fill(out, sizes[at], at);
            lmt_request request = send_message(at, out, sizes[at]);
            OK(wait_for(request, &status));
            GIVES(LMT_ERR_UNKNOWN_REQUEST, lmt_device_test(device, request, &(bool){false}, NULL));
        } else {
            lmt_arrival arrival = next_arrival();
            CHECK(tag_of(&arrival) == at && arrival.bytes == sizes[at]);
            memset(in, 0, sizes[at]);
            OK(wait_for(receive(arrival.announcement, in, MOST), &status));
            check_filled(in, sizes[at], at);
        }
        CHECK(status.bytes == sizes[at] && lmt_peer_equal(status.peer, peer));
    }
}

static void cut(int sends)
{
    lmt_status status;
    if (sends) {
        fill(out, 200000, 9);
        OK(wait_for(send_message(1, out, 200000), NULL));
        return;
    }
    lmt_arrival arrival = next_arrival();
    memset(in, 0x55, 200);
    GIVES(LMT_ERR_TRUNCATED, wait_for(receive(arrival.announcement, in, 100), &status));
    CHECK(status.bytes == 100 && status.message_bytes == 200000);
    check_filled(in, 100, 9);
    CHECK(in[100] == 0x55);
}

/* A message is taken back; one that is matched is not. */
static void withdrawals(int sends)
{
    if (sends) {
        lmt_request first = send_message(1, out, 100000), second = send_message(2, out, 100000);
        /* Both are announced before. */
        size_t unsent = 1;
        while (unsent > 0) {
            progress();
            OK(lmt_device_peer(device, peer, NULL, &unsent));
        }
        OK(lmt_device_cancel(device, first));
        GIVES(LMT_ERR_CANCELLED, wait_for(first, NULL));
        OK(wait_for(second, NULL));
        return;
    }
    lmt_arrival one = next_arrival(), two = next_arrival(), withdrawn = next_arrival();
    bool is_it;
    CHECK(tag_of(&one) == 1 && tag_of(&two) == 2 && withdrawn.kind == LMT_WITHDRAWN);
    OK(lmt_announcement_is(two.announcement, withdrawn.withdrawal, &is_it));
    CHECK(!is_it);
    OK(lmt_announcement_is(one.announcement, withdrawn.withdrawal, &is_it));
    CHECK(is_it);
    OK(lmt_announcement_drop(one.announcement));
    GIVES(LMT_ERR_HANDLE, lmt_announcement_drop(one.announcement));
    OK(lmt_device_withdrawn(device, withdrawn.withdrawal, 1));
    GIVES(LMT_ERR_HANDLE, lmt_device_withdrawn(device, withdrawn.withdrawal, 1));
    GIVES(LMT_ERR_HANDLE, lmt_withdrawal_drop(withdrawn.withdrawal));
    OK(wait_for(receive(two.announcement, in, MOST), NULL));
}

/* What send_packet answers is told, and the packet is not lost. */
static void failing_callback(int sends)
{
    if (sends) {
        the_link.failing = 1;
        lmt_request request = send_message(3, out, 70000);
        GIVES(LMT_ERR_CALLBACK, lmt_device_progress(device, NULL));
        CHECK(strstr(lmt_last_error(), "77"));
        OK(wait_for(request, NULL));
    } else {
        lmt_arrival arrival = next_arrival();
        OK(wait_for(receive(arrival.announcement, in, MOST), NULL));
    }
}

/* A question that is never answered: what it is about ends with the device. */
static void unanswered(int sends)
{
    if (sends) {
        size_t unsent = 1;
        lmt_request request = send_message(4, out, 70000);
        while (unsent > 0) {
            progress();
            OK(lmt_device_peer(device, peer, NULL, &unsent));
        }
        OK(lmt_device_cancel(device, request));
        return;
    }
    lmt_arrival announced = next_arrival(), withdrawn = next_arrival();
    CHECK(tag_of(&announced) == 4 && withdrawn.kind == LMT_WITHDRAWN);
    OK(lmt_announcement_drop(announced.announcement));
    OK(lmt_withdrawal_drop(withdrawn.withdrawal));
}

static void telling(void)
{
    char text[8192];
    size_t count, unsent;
    lmt_counters paths[32];
    int descriptor;
    uint64_t limit_us;
    bool is_connected;
    OK(lmt_device_peer(device, peer, &is_connected, &unsent));
    CHECK(is_connected && unsent == 0);
    OK(lmt_device_explain(device, peer, 1 << 20, 0, LMT_FORMAT_TEXT, text, sizeof text, NULL));
    CHECK(strstr(text, "1048576 bytes"));
    OK(lmt_device_explain(device, peer, 1 << 20, 0, LMT_FORMAT_JSON, text, sizeof text, NULL));
    CHECK(text[0] == '{');
    OK(lmt_device_statistics(device, paths, 32, &count));
    uint64_t moved = 0;
    for (size_t at = 0; at < count; at++)
        moved += paths[at].sent + paths[at].received;
    CHECK(moved >= 12);
    OK(lmt_device_wait_descriptor(device, &descriptor, &limit_us));
    CHECK(descriptor >= 0);
}

static void body(int rank, int socket)
{
    the_link.socket = socket;
    device = connect_device(socket, send_packet, &the_link, &peer);
    the_link.device = device;
    out = malloc(MOST);
    in = malloc(MOST);
    memset(out, 1, MOST);
    for (int turn = 0; turn < 2; turn++) {
        transfers(rank == turn);
        cut(rank == turn);
        withdrawals(rank == turn);
        failing_callback(rank == turn);
    }
    CHECK(the_link.sent > 0);
    telling();
    unanswered(rank == 0);
    /* A message that ends tells that the other has come here, too. */
    lmt_request last = send_message(9, out, 10);
    lmt_arrival arrival = next_arrival();
    OK(wait_for(receive(arrival.announcement, in, 10), NULL));
    OK(wait_for(last, NULL));
    size_t unsent = 1;
    while (unsent > 0 && lmt_device_peer(device, peer, NULL, &unsent) == LMT_OK)
        progress();
    shutdown(socket, SHUT_WR);
    char byte;
    while (recv(socket, &byte, 1, 0) > 0)
        ;
    OK(lmt_device_close(device));
    GIVES(LMT_ERR_HANDLE, lmt_device_progress(device, NULL));
    free(out);
    free(in);
}

int main(void)
{
    return run_pair(body, 0);
}
