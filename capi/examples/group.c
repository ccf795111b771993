/*
 * Ranks that `lmt run` has started and that know each other's addresses from the start.
 *
 *     cc -o group group.c $(pkg-config --cflags --libs lmt)
 *     lmt run -n 4 -- ./group
 *
 * Each sends its rank to the next one, in a ring.
 */
#include <stdio.h>
#include <stdlib.h>

#include <lmt.h>

static void check(lmt_code code, const char *what)
{
    if (code != LMT_OK) {
        fprintf(stderr, "%s: %s (%s)\n", what, lmt_last_error(), lmt_strerror(code));
        exit(1);
    }
}

int main(void)
{
    uint32_t rank, size, told;
    lmt_options *options;
    lmt_endpoint *endpoint;
    lmt_peer previous, next;
    lmt_request receive;

    check(lmt_group(&rank, &size), "the group");
    check(lmt_options_create(&options), "options");
    check(lmt_options_set_group_rank(options), "this rank's identity");
    check(lmt_endpoint_create(options, &endpoint), "creating the endpoint");
    check(lmt_options_destroy(options), "options");

    unsigned char address[LMT_ADDRESS_MAX_BYTES];
    size_t length;
    check(lmt_group_address((rank + 1) % size, address, sizeof address, &length), "the next rank's address");
    check(lmt_peer_insert(endpoint, address, length, &next), "naming the next rank");
    check(lmt_group_address((rank + size - 1) % size, address, sizeof address, &length), "the previous one's");
    check(lmt_peer_insert(endpoint, address, length, &previous), "naming the previous rank");

    check(lmt_irecv(endpoint, previous, 1, 0, &told, sizeof told, &receive), "beginning a receive");
    /* Synchronous: nobody leaves before the next one has its message. */
    check(lmt_send(endpoint, next, 1, &rank, sizeof rank, LMT_SEND_SYNCHRONOUS), "sending");
    check(lmt_wait(endpoint, receive, -1, NULL), "receiving");
    check(lmt_endpoint_close(endpoint), "closing");
    printf("rank %u of %u heard rank %u\n", (unsigned)rank, (unsigned)size, (unsigned)told);
    return 0;
}
