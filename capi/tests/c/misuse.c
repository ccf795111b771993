/* Every function, called wrongly: with NULL, with handles that are closed, of another
 * kind or made up, with others' peers and requests, with values that it cannot have, by
 * two threads at once, and in a forked child. Each gives a code and a sentence. */
#include "check.h"

static lmt_endpoint *endpoint, *other;
static lmt_device *device;
static lmt_peer myself, device_peer;
static const lmt_request none; /* LMT_REQUEST_NULL */
static char memory[4096];
static struct iovec part = {memory, sizeof memory};
static lmt_request request;
static bool flag;
static size_t number;
static lmt_status status;

static int take(void *context, lmt_peer to, const void *packet, size_t bytes)
{
    (void)context, (void)to, (void)packet, (void)bytes;
    return LMT_OK;
}

static void errors(void)
{
    CHECK(strcmp(lmt_last_error(), "") == 0);
    for (int code = 0; code >= LMT_ERR_NAME_IN_USE; code--)
        CHECK(strlen(lmt_strerror(code)) > 3 && !strstr(lmt_strerror(code), "no such code"));
    CHECK(strstr(lmt_strerror(1), "no such code") && strstr(lmt_strerror(-1000), "no such code"));
    uint32_t major, minor, patch;
    OK(lmt_version(&major, &minor, &patch));
    CHECK(major == LMT_VERSION_MAJOR && minor == LMT_VERSION_MINOR && patch == LMT_VERSION_PATCH);
    OK(lmt_version(NULL, NULL, NULL));
    OK(lmt_admit_siblings());
}

/* What values are. */
static void comparing(void)
{
    CHECK(lmt_peer_equal(myself, myself) && !lmt_peer_equal(myself, LMT_ANY_PEER));
    CHECK(!lmt_peer_equal(myself, (lmt_peer){myself.owner + 1, myself.number}));
    CHECK(lmt_request_is_null(none) && lmt_request_is_null(LMT_REQUEST_NULL));
    CHECK(!lmt_request_is_null((lmt_request){0, 1}) && !lmt_request_is_null((lmt_request){1, 0}));
}

/* A pointer that no object of its type can have. */
#define ASKEW(type) ((type *)(void *)(memory + 1))

static void misaligned(void)
{
    lmt_region_key key;
    lmt_code codes[1];
    memset(&key, 0, sizeof key);
    GIVES(LMT_ERR_INVALID, lmt_version(ASKEW(uint32_t), NULL, NULL));
    GIVES(LMT_ERR_INVALID, lmt_endpoint_create(NULL, ASKEW(lmt_endpoint *)));
    GIVES(LMT_ERR_INVALID, lmt_endpoint_address(endpoint, memory, sizeof memory, ASKEW(size_t)));
    GIVES(LMT_ERR_INVALID, lmt_isend(endpoint, myself, 1, memory, 1, 0, ASKEW(lmt_request)));
    GIVES(LMT_ERR_INVALID, lmt_isend_segments(endpoint, myself, 1, ASKEW(struct iovec), 1, 0, &request));
    GIVES(LMT_ERR_INVALID, lmt_recv(endpoint, myself, 1, 0, memory, 1, ASKEW(lmt_status)));
    GIVES(LMT_ERR_INVALID, lmt_test(endpoint, none, &flag, ASKEW(lmt_status)));
    GIVES(LMT_ERR_INVALID, lmt_wait(endpoint, none, 0, ASKEW(lmt_status)));
    GIVES(LMT_ERR_INVALID, lmt_wait_all(endpoint, &none, 1, 0, codes, ASKEW(lmt_status)));
    GIVES(LMT_ERR_INVALID, lmt_wait_any(endpoint, ASKEW(lmt_request), 1, 0, &number));
    GIVES(LMT_ERR_INVALID, lmt_alloc(1, ASKEW(void *)));
    GIVES(LMT_ERR_INVALID, lmt_statistics(endpoint, myself, ASKEW(lmt_counters), 1, NULL));
    GIVES(LMT_ERR_INVALID, lmt_device_on_packet(device, device_peer, memory, 1, ASKEW(lmt_arrival)));
    GIVES(LMT_ERR_INVALID, lmt_endpoint_address(endpoint, memory, SIZE_MAX, &number));
    /* Places may overlap. */
    uint32_t part_of_version;
    OK(lmt_version(&part_of_version, &part_of_version, &part_of_version));
    CHECK(part_of_version == LMT_VERSION_PATCH);
}

static void options(void)
{
    lmt_options *options;
    char id[LMT_ID_BYTES] = "sixteen bytes...";
    GIVES(LMT_ERR_NULL, lmt_options_create(NULL));
    OK(lmt_options_create(&options));
    GIVES(LMT_ERR_NULL, lmt_options_set(NULL, "quota_bytes", "1MiB"));
    GIVES(LMT_ERR_NULL, lmt_options_set(options, NULL, "1MiB"));
    GIVES(LMT_ERR_NULL, lmt_options_set(options, "quota_bytes", NULL));
    GIVES(LMT_ERR_INVALID, lmt_options_set(options, "quota_bytes", "\xff"));
    GIVES(LMT_ERR_CONFIGURATION, lmt_options_set(options, "quota", "1MiB"));
    GIVES(LMT_ERR_CONFIGURATION, lmt_options_set(options, "quota_bytes", "much"));
    GIVES(LMT_ERR_CONFIGURATION, lmt_options_set(options, "inbox_cells", "7"));
    CHECK(strstr(lmt_last_error(), "inbox_cells"));
    GIVES(LMT_ERR_NULL, lmt_options_set_id(NULL, id));
    GIVES(LMT_ERR_NULL, lmt_options_set_id(options, NULL));
    GIVES(LMT_ERR_NULL, lmt_options_set_group_rank(NULL));
    GIVES(LMT_ERR_NO_GROUP, lmt_options_set_group_rank(options));
    GIVES(LMT_ERR_NULL, lmt_options_set_statistics(NULL, true));
    GIVES(LMT_ERR_NULL, lmt_options_set_hear_strangers(NULL, true));
    OK(lmt_options_set(options, "mechanisms", "nosuch"));
    lmt_endpoint *made;
    GIVES(LMT_ERR_CONFIGURATION, lmt_endpoint_create(options, &made));
    CHECK(strstr(lmt_last_error(), "nosuch"));
    lmt_device *made_device;
    GIVES(LMT_ERR_CONFIGURATION, lmt_device_create(options, take, NULL, &made_device));
    OK(lmt_options_set(options, "mechanisms", "shm"));
    OK(lmt_options_set_id(options, id));
    OK(lmt_options_set_statistics(options, false));
    OK(lmt_options_set_hear_strangers(options, false));
    OK(lmt_options_set(options, "max_peers", "1"));
    OK(lmt_endpoint_create(options, &made));
    lmt_peer peer;
    struct address address;
    char read_id[LMT_ID_BYTES];
    OK(lmt_endpoint_address(made, address.bytes, sizeof address.bytes, &address.length));
    OK(lmt_peer_insert(endpoint, address.bytes, address.length, &peer));
    OK(lmt_peer_id(endpoint, peer, read_id));
    CHECK(memcmp(read_id, id, sizeof id) == 0);
    /* There is one of this name, and room for one peer. */
    lmt_endpoint *same;
    GIVES(LMT_ERR_NAME_IN_USE, lmt_endpoint_create(options, &same));
    GIVES(LMT_ERR_NAME_IN_USE, lmt_device_create(options, take, NULL, &made_device));
    insert_oneself(made);
    OK(lmt_endpoint_address(endpoint, address.bytes, sizeof address.bytes, &address.length));
    GIVES(LMT_ERR_LIMIT, lmt_peer_insert(made, address.bytes, address.length, &peer));
    CHECK(strstr(lmt_last_error(), "max_peers"));
    OK(lmt_endpoint_close(made));
    /* It is no endpoint, and used when it is gone. */
    GIVES(LMT_ERR_HANDLE, lmt_progress((lmt_endpoint *)options, NULL));
    GIVES(LMT_ERR_NULL, lmt_options_destroy(NULL));
    OK(lmt_options_destroy(options));
    GIVES(LMT_ERR_HANDLE, lmt_options_destroy(options));
    GIVES(LMT_ERR_HANDLE, lmt_options_set(options, "quota_bytes", "1MiB"));
    GIVES(LMT_ERR_HANDLE, lmt_options_set_statistics(options, true));
    GIVES(LMT_ERR_HANDLE, lmt_options_set_hear_strangers(options, true));
    GIVES(LMT_ERR_HANDLE, lmt_options_set_id(options, id));
    GIVES(LMT_ERR_HANDLE, lmt_options_set_group_rank(options));
    GIVES(LMT_ERR_HANDLE, lmt_endpoint_create(options, &made));
    GIVES(LMT_ERR_HANDLE, lmt_device_create(options, take, NULL, &made_device));
}

static void group(void)
{
    uint32_t rank, size;
    GIVES(LMT_ERR_NULL, lmt_group(NULL, &size));
    GIVES(LMT_ERR_NULL, lmt_group(&rank, NULL));
    GIVES(LMT_ERR_NO_GROUP, lmt_group(&rank, &size));
    GIVES(LMT_ERR_NULL, lmt_group_address(0, NULL, 90, NULL));
    GIVES(LMT_ERR_NO_GROUP, lmt_group_address(0, memory, sizeof memory, NULL));
    setenv("LMT_RANK", "1", 1);
    GIVES(LMT_ERR_CONFIGURATION, lmt_group(&rank, &size));
    setenv("LMT_SIZE", "2", 1);
    setenv("LMT_GROUP", "00000000000000000000000000000001", 1);
    OK(lmt_group(&rank, &size));
    CHECK(rank == 1 && size == 2);
    OK(lmt_group_address(0, memory, sizeof memory, &number));
    CHECK(number >= 20 && number <= LMT_ADDRESS_MAX_BYTES);
    GIVES(LMT_ERR_INVALID, lmt_group_address(2, memory, sizeof memory, NULL));
    GIVES(LMT_ERR_TOO_SHORT, lmt_group_address(0, memory, 3, &number));
    CHECK(number >= 20);
    unsetenv("LMT_RANK");
    unsetenv("LMT_SIZE");
    unsetenv("LMT_GROUP");
}

/* What each function that takes an endpoint answers, if that is `bad`. */
static void endpoints(lmt_endpoint *bad, lmt_code code)
{
    lmt_message *message;
    lmt_region_key key;
    lmt_code codes[1];
    int descriptor;
    uint64_t limit_us;
    lmt_counters counters[1];
    memset(&key, 0, sizeof key);
    GIVES(code, lmt_endpoint_close(bad));
    GIVES(code, lmt_endpoint_address(bad, memory, sizeof memory, &number));
    struct address address;
    OK(lmt_endpoint_address(endpoint, address.bytes, sizeof address.bytes, &address.length));
    GIVES(code, lmt_peer_insert(bad, address.bytes, address.length, &(lmt_peer){0, 0}));
    GIVES(code, lmt_peer_remove(bad, myself));
    GIVES(code, lmt_peer_id(bad, myself, memory));
    GIVES(code, lmt_send(bad, myself, 1, memory, 1, 0));
    GIVES(code, lmt_recv(bad, LMT_ANY_PEER, 1, 0, memory, 1, &status));
    GIVES(code, lmt_isend(bad, myself, 1, memory, 1, 0, &request));
    GIVES(code, lmt_isend_segments(bad, myself, 1, &part, 1, 0, &request));
    GIVES(code, lmt_irecv(bad, LMT_ANY_PEER, 1, 0, memory, 1, &request));
    GIVES(code, lmt_irecv_segments(bad, LMT_ANY_PEER, 1, 0, &part, 1, &request));
    flag = false;
    GIVES(code, lmt_test(bad, none, &flag, &status));
    CHECK(!flag);
    GIVES(code, lmt_wait(bad, none, 0, &status));
    GIVES(code, lmt_wait_any(bad, &none, 1, 0, &number));
    GIVES(code, lmt_wait_all(bad, &none, 1, 0, codes, &status));
    GIVES(code, lmt_is_done(bad, none, &flag));
    GIVES(code, lmt_cancel(bad, none));
    GIVES(code, lmt_iprobe(bad, LMT_ANY_PEER, 1, 0, &flag, &status));
    GIVES(code, lmt_improbe(bad, LMT_ANY_PEER, 1, 0, &message, &status));
    GIVES(code, lmt_imrecv(bad, NULL, memory, 1, &request));
    GIVES(code, lmt_progress(bad, &flag));
    GIVES(code, lmt_wait_for_progress(bad, 0, &flag));
    GIVES(code, lmt_wait_descriptor(bad, &descriptor));
    GIVES(code, lmt_prepare_to_sleep(bad, &flag, &limit_us));
    GIVES(code, lmt_explain(bad, myself, 1, 0, LMT_FORMAT_TEXT, memory, sizeof memory, &number));
    GIVES(code, lmt_statistics(bad, myself, counters, 1, &number));
    GIVES(code, lmt_region_register(bad, &part, 1, LMT_REGION_READ, &key));
    GIVES(code, lmt_region_allocate(bad, 1, LMT_REGION_READ, &key, NULL));
    GIVES(code, lmt_region_destroy(bad, &key));
    GIVES(code, lmt_region_get(bad, &key, 0, &part, 1, &request));
    GIVES(code, lmt_region_put(bad, &key, 0, &part, 1, &request));
}

/* The same of devices. */
static void devices(lmt_device *bad, lmt_code code)
{
    int descriptor;
    lmt_counters counters[1];
    lmt_arrival arrival;
    struct address address;
    OK(lmt_device_address(device, address.bytes, sizeof address.bytes, &address.length));
    GIVES(code, lmt_device_close(bad));
    GIVES(code, lmt_device_address(bad, memory, sizeof memory, &number));
    GIVES(code, lmt_device_insert_peer(bad, address.bytes, address.length, &(lmt_peer){0, 0}));
    GIVES(code, lmt_device_peer(bad, device_peer, &flag, &number));
    GIVES(code, lmt_device_progress(bad, &flag));
    GIVES(code, lmt_device_wait_descriptor(bad, &descriptor, NULL));
    GIVES(code, lmt_device_explain(bad, device_peer, 1, 0, LMT_FORMAT_TEXT, memory, sizeof memory, NULL));
    GIVES(code, lmt_device_statistics(bad, counters, 1, &number));
    GIVES(code, lmt_device_send(bad, device_peer, memory, 1, &part, 1, 0, &request));
    GIVES(code, lmt_device_on_packet(bad, device_peer, memory, 1, &arrival));
    GIVES(code, lmt_device_matched(bad, NULL, &part, 1, &request));
    GIVES(code, lmt_device_withdrawn(bad, NULL, 1));
    GIVES(code, lmt_device_cancel(bad, none));
    flag = false;
    GIVES(code, lmt_device_test(bad, none, &flag, &status));
    CHECK(!flag);
}

/* Places and data that are NULL where they must not be, at a good endpoint. */
static void nulls(void)
{
    lmt_region_key key;
    lmt_code codes[1];
    struct iovec bad = {NULL, 1};
    memset(&key, 0, sizeof key);
    GIVES(LMT_ERR_NULL, lmt_endpoint_create(NULL, NULL));
    GIVES(LMT_ERR_NULL, lmt_endpoint_address(endpoint, NULL, 90, NULL));
    GIVES(LMT_ERR_NULL, lmt_peer_insert(endpoint, NULL, 20, &myself));
    GIVES(LMT_ERR_NULL, lmt_peer_insert(endpoint, memory, 20, NULL));
    GIVES(LMT_ERR_NULL, lmt_peer_id(endpoint, myself, NULL));
    GIVES(LMT_ERR_NULL, lmt_send(endpoint, myself, 1, NULL, 1, 0));
    GIVES(LMT_ERR_NULL, lmt_recv(endpoint, myself, 1, 0, NULL, 1, &status));
    GIVES(LMT_ERR_NULL, lmt_isend(endpoint, myself, 1, NULL, 1, 0, &request));
    GIVES(LMT_ERR_NULL, lmt_isend(endpoint, myself, 1, memory, 1, 0, NULL));
    GIVES(LMT_ERR_NULL, lmt_isend_segments(endpoint, myself, 1, NULL, 1, 0, &request));
    GIVES(LMT_ERR_NULL, lmt_isend_segments(endpoint, myself, 1, &bad, 1, 0, &request));
    GIVES(LMT_ERR_NULL, lmt_isend_segments(endpoint, myself, 1, &part, 1, 0, NULL));
    GIVES(LMT_ERR_NULL, lmt_irecv(endpoint, myself, 1, 0, NULL, 1, &request));
    GIVES(LMT_ERR_NULL, lmt_irecv(endpoint, myself, 1, 0, memory, 1, NULL));
    GIVES(LMT_ERR_NULL, lmt_irecv_segments(endpoint, myself, 1, 0, NULL, 1, &request));
    GIVES(LMT_ERR_NULL, lmt_irecv_segments(endpoint, myself, 1, 0, &bad, 1, &request));
    GIVES(LMT_ERR_NULL, lmt_irecv_segments(endpoint, myself, 1, 0, &part, 1, NULL));
    GIVES(LMT_ERR_NULL, lmt_test(endpoint, none, NULL, &status));
    GIVES(LMT_ERR_NULL, lmt_wait_any(endpoint, NULL, 1, 0, &number));
    GIVES(LMT_ERR_NULL, lmt_wait_any(endpoint, &none, 1, 0, NULL));
    GIVES(LMT_ERR_NULL, lmt_wait_all(endpoint, NULL, 1, 0, codes, NULL));
    GIVES(LMT_ERR_NULL, lmt_wait_all(endpoint, &none, 1, 0, NULL, NULL));
    GIVES(LMT_ERR_NULL, lmt_is_done(endpoint, none, NULL));
    GIVES(LMT_ERR_NULL, lmt_iprobe(endpoint, myself, 1, 0, NULL, &status));
    GIVES(LMT_ERR_NULL, lmt_improbe(endpoint, myself, 1, 0, NULL, &status));
    GIVES(LMT_ERR_NULL, lmt_imrecv(endpoint, NULL, memory, 1, &request));
    GIVES(LMT_ERR_NULL, lmt_imrecv(endpoint, NULL, memory, 1, NULL));
    GIVES(LMT_ERR_NULL, lmt_imrecv(endpoint, NULL, NULL, 1, &request));
    GIVES(LMT_ERR_NULL, lmt_message_discard(NULL));
    GIVES(LMT_ERR_NULL, lmt_wait_descriptor(endpoint, NULL));
    GIVES(LMT_ERR_NULL, lmt_prepare_to_sleep(endpoint, NULL, NULL));
    GIVES(LMT_ERR_NULL, lmt_explain(endpoint, myself, 1, 0, LMT_FORMAT_TEXT, NULL, 1, NULL));
    GIVES(LMT_ERR_NULL, lmt_statistics(endpoint, myself, NULL, 1, NULL));
    GIVES(LMT_ERR_NULL, lmt_alloc(1, NULL));
    GIVES(LMT_ERR_NULL, lmt_free(NULL));
    GIVES(LMT_ERR_NULL, lmt_region_register(endpoint, NULL, 1, LMT_REGION_READ, &key));
    GIVES(LMT_ERR_NULL, lmt_region_register(endpoint, &part, 1, LMT_REGION_READ, NULL));
    GIVES(LMT_ERR_NULL, lmt_region_allocate(endpoint, 1, LMT_REGION_READ, NULL, NULL));
    GIVES(LMT_ERR_NULL, lmt_region_destroy(endpoint, NULL));
    GIVES(LMT_ERR_NULL, lmt_region_bytes(NULL, &(uint64_t){0}));
    GIVES(LMT_ERR_NULL, lmt_region_bytes(&key, NULL));
    GIVES(LMT_ERR_NULL, lmt_region_get(endpoint, NULL, 0, &part, 1, &request));
    GIVES(LMT_ERR_NULL, lmt_region_get(endpoint, &key, 0, NULL, 1, &request));
    GIVES(LMT_ERR_NULL, lmt_region_get(endpoint, &key, 0, &part, 1, NULL));
    GIVES(LMT_ERR_NULL, lmt_region_put(endpoint, NULL, 0, &part, 1, &request));
    GIVES(LMT_ERR_NULL, lmt_region_put(endpoint, &key, 0, NULL, 1, &request));
    GIVES(LMT_ERR_NULL, lmt_region_put(endpoint, &key, 0, &part, 1, NULL));
    /* No bytes need no memory. */
    OK(lmt_irecv(endpoint, myself, 1, 0, NULL, 0, &request));
    OK(lmt_send(endpoint, myself, 1, NULL, 0, 0));
    OK(lmt_wait(endpoint, request, -1, NULL));
}

static void nulls_at_the_device(void)
{
    lmt_device *made;
    lmt_arrival arrival;
    struct iovec bad = {NULL, 1};
    GIVES(LMT_ERR_NULL, lmt_device_create(NULL, NULL, NULL, &made));
    GIVES(LMT_ERR_NULL, lmt_device_create(NULL, take, NULL, NULL));
    GIVES(LMT_ERR_NULL, lmt_device_address(device, NULL, 90, NULL));
    GIVES(LMT_ERR_NULL, lmt_device_insert_peer(device, NULL, 20, &device_peer));
    GIVES(LMT_ERR_NULL, lmt_device_insert_peer(device, memory, 20, NULL));
    GIVES(LMT_ERR_NULL, lmt_device_wait_descriptor(device, NULL, NULL));
    GIVES(LMT_ERR_NULL, lmt_device_explain(device, device_peer, 1, 0, LMT_FORMAT_TEXT, NULL, 1, NULL));
    GIVES(LMT_ERR_NULL, lmt_device_statistics(device, NULL, 1, NULL));
    GIVES(LMT_ERR_NULL, lmt_device_send(device, device_peer, NULL, 1, &part, 1, 0, &request));
    GIVES(LMT_ERR_NULL, lmt_device_send(device, device_peer, memory, 1, NULL, 1, 0, &request));
    GIVES(LMT_ERR_NULL, lmt_device_send(device, device_peer, memory, 1, &bad, 1, 0, &request));
    GIVES(LMT_ERR_NULL, lmt_device_send(device, device_peer, memory, 1, &part, 1, 0, NULL));
    GIVES(LMT_ERR_NULL, lmt_device_on_packet(device, device_peer, NULL, 1, &arrival));
    GIVES(LMT_ERR_NULL, lmt_device_on_packet(device, device_peer, memory, 1, NULL));
    GIVES(LMT_ERR_NULL, lmt_device_matched(device, NULL, &part, 1, &request));
    GIVES(LMT_ERR_NULL, lmt_device_matched(device, NULL, NULL, 1, &request));
    GIVES(LMT_ERR_NULL, lmt_device_matched(device, NULL, &part, 1, NULL));
    GIVES(LMT_ERR_NULL, lmt_device_withdrawn(device, NULL, 1));
    GIVES(LMT_ERR_NULL, lmt_device_test(device, none, NULL, NULL));
    GIVES(LMT_ERR_NULL, lmt_announcement_drop(NULL));
    GIVES(LMT_ERR_NULL, lmt_withdrawal_drop(NULL));
    GIVES(LMT_ERR_HANDLE, lmt_withdrawal_drop((lmt_withdrawal *)device));
    GIVES(LMT_ERR_NULL, lmt_announcement_is(NULL, NULL, &flag));
    GIVES(LMT_ERR_NULL, lmt_announcement_is(NULL, NULL, NULL));
}

/* Values that an argument cannot have, and what is another's or nobody's. */
static void values(void)
{
    struct address address;
    lmt_peer foreign;
    lmt_request others;
    lmt_region_key key;
    lmt_code codes[1];
    OK(lmt_endpoint_address(endpoint, address.bytes, sizeof address.bytes, &address.length));
    OK(lmt_peer_insert(other, address.bytes, address.length, &foreign));
    OK(lmt_irecv(other, LMT_ANY_PEER, 1, 0, memory, 1, &others));

    GIVES(LMT_ERR_ADDRESS, lmt_peer_insert(endpoint, "nonsense", 8, &foreign));
    GIVES(LMT_ERR_ADDRESS, lmt_peer_insert(endpoint, NULL, 0, &foreign));
    GIVES(LMT_ERR_TOO_SHORT, lmt_endpoint_address(endpoint, memory, 5, &number));
    CHECK(number == address.length);
    GIVES(LMT_ERR_UNKNOWN_PEER, lmt_send(endpoint, foreign, 1, memory, 1, 0));
    GIVES(LMT_ERR_UNKNOWN_PEER, lmt_send(endpoint, LMT_ANY_PEER, 1, memory, 1, 0));
    GIVES(LMT_ERR_UNKNOWN_PEER, lmt_isend(endpoint, (lmt_peer){0, 0}, 1, memory, 1, 0, &request));
    GIVES(LMT_ERR_UNKNOWN_PEER, lmt_recv(endpoint, foreign, 1, 0, memory, 1, NULL));
    GIVES(LMT_ERR_UNKNOWN_PEER, lmt_irecv(endpoint, (lmt_peer){0, 0}, 1, 0, memory, 1, &request));
    GIVES(LMT_ERR_UNKNOWN_PEER, lmt_irecv(endpoint, (lmt_peer){myself.owner, 99}, 1, 0, memory, 1, &request));
    GIVES(LMT_ERR_UNKNOWN_PEER, lmt_iprobe(endpoint, foreign, 1, 0, &flag, NULL));
    GIVES(LMT_ERR_UNKNOWN_PEER, lmt_peer_id(endpoint, foreign, memory));
    GIVES(LMT_ERR_UNKNOWN_PEER, lmt_peer_remove(endpoint, foreign));
    GIVES(LMT_ERR_UNKNOWN_PEER,
          lmt_explain(endpoint, foreign, 1, 0, LMT_FORMAT_TEXT, memory, sizeof memory, NULL));
    GIVES(LMT_ERR_UNKNOWN_PEER, lmt_statistics(endpoint, foreign, NULL, 0, NULL));
    GIVES(LMT_ERR_INVALID, lmt_send(endpoint, myself, 1, memory, 1, LMT_HINT_WARM | LMT_HINT_COLD));
    GIVES(LMT_ERR_INVALID, lmt_send(endpoint, myself, 1, memory, 1, LMT_EXPLAIN_SEGMENTS));
    GIVES(LMT_ERR_INVALID, lmt_isend(endpoint, myself, 1, memory, 1, LMT_HINT_ONCE | LMT_HINT_AGAIN, &request));
    GIVES(LMT_ERR_INVALID, lmt_isend(endpoint, myself, 1, memory, SIZE_MAX, 0, &request));
    GIVES(LMT_ERR_INVALID, lmt_send(endpoint, myself, 1, memory, SIZE_MAX, 0));
    GIVES(LMT_ERR_INVALID, lmt_recv(endpoint, myself, 1, 0, memory, SIZE_MAX, NULL));
    GIVES(LMT_ERR_INVALID, lmt_irecv_segments(endpoint, myself, 1, 0, &part, SIZE_MAX, &request));
    GIVES(LMT_ERR_INVALID,
          lmt_explain(endpoint, myself, 1, LMT_SEND_SYNCHRONOUS, LMT_FORMAT_TEXT, memory, sizeof memory, NULL));
    GIVES(LMT_ERR_INVALID, lmt_explain(endpoint, myself, 1, 0, 2, memory, sizeof memory, NULL));
    /* What names nothing has ended. */
    number = 0;
    OK(lmt_wait_any(endpoint, NULL, 0, -1, &number));
    CHECK(number == LMT_NO_INDEX);
    number = 0;
    OK(lmt_wait_any(endpoint, &none, 1, -1, &number));
    CHECK(number == LMT_NO_INDEX);
    OK(lmt_wait_all(endpoint, NULL, 0, -1, NULL, NULL));
    memset(&status, 1, sizeof status);
    OK(lmt_wait_all(endpoint, &none, 1, -1, codes, &status));
    CHECK(codes[0] == LMT_OK && status.bytes == 0 && status.message_bytes == 0);
    memset(&status, 1, sizeof status);
    OK(lmt_wait(endpoint, none, -1, &status));
    CHECK(status.tag == 0 && lmt_peer_equal(status.peer, (lmt_peer){0, 0}));
    flag = false;
    OK(lmt_is_done(endpoint, none, &flag));
    CHECK(flag);
    flag = false;
    OK(lmt_test(endpoint, none, &flag, NULL));
    CHECK(flag);
    GIVES(LMT_ERR_UNKNOWN_REQUEST, lmt_cancel(endpoint, none));
    GIVES(LMT_ERR_UNKNOWN_REQUEST, lmt_wait(endpoint, others, -1, NULL));
    GIVES(LMT_ERR_UNKNOWN_REQUEST, lmt_test(endpoint, others, &flag, NULL));
    GIVES(LMT_ERR_UNKNOWN_REQUEST, lmt_wait_any(endpoint, &others, 1, -1, &number));
    GIVES(LMT_ERR_UNKNOWN_REQUEST, lmt_wait_all(endpoint, &others, 1, -1, codes, NULL));
    GIVES(LMT_ERR_UNKNOWN_REQUEST, lmt_is_done(endpoint, others, &flag));
    GIVES(LMT_ERR_UNKNOWN_REQUEST, lmt_cancel(endpoint, others));
    GIVES(LMT_ERR_INVALID, lmt_alloc(0, &(void *){NULL}));
    GIVES(LMT_ERR_NO_MEMORY, lmt_alloc(SIZE_MAX / 4, &(void *){NULL}));
    GIVES(LMT_ERR_HANDLE, lmt_free(memory));
    GIVES(LMT_ERR_INVALID, lmt_region_register(endpoint, &part, 1, 0, &key));
    GIVES(LMT_ERR_INVALID, lmt_region_register(endpoint, &part, 1, LMT_REGION_SINGLE_USE, &key));
    GIVES(LMT_ERR_INVALID, lmt_region_allocate(endpoint, 1, LMT_HINT_WARM, &key, NULL));
    GIVES(LMT_ERR_INVALID, lmt_region_allocate(endpoint, 0, LMT_REGION_READ, &key, NULL));
    GIVES(LMT_ERR_INVALID, lmt_send(endpoint, myself, 1, memory, 1, LMT_REGION_READ));
    GIVES(LMT_ERR_INVALID,
          lmt_explain(endpoint, myself, 1, LMT_FORMAT_TEXT, 0, memory, sizeof memory, NULL));
    memset(&key, 7, sizeof key);
    GIVES(LMT_ERR_REGION_NOT_REGISTERED, lmt_region_destroy(endpoint, &key));
    GIVES(LMT_ERR_UNKNOWN_PEER, lmt_region_get(endpoint, &key, 0, &part, 1, &request));
    OK(lmt_cancel(other, others));
}

static void values_at_the_device(void)
{
    lmt_device *stranger;
    lmt_peer foreign;
    lmt_arrival arrival;
    struct address address;
    OK(lmt_device_create(NULL, take, NULL, &stranger));
    OK(lmt_device_address(device, address.bytes, sizeof address.bytes, &address.length));
    OK(lmt_device_insert_peer(stranger, address.bytes, address.length, &foreign));
    GIVES(LMT_ERR_ADDRESS, lmt_device_insert_peer(device, "x", 1, &foreign));
    GIVES(LMT_ERR_TOO_SHORT, lmt_device_address(device, memory, 5, &number));
    GIVES(LMT_ERR_UNKNOWN_PEER, lmt_device_peer(device, foreign, NULL, NULL));
    GIVES(LMT_ERR_UNKNOWN_PEER, lmt_device_peer(device, (lmt_peer){device_peer.owner, 50}, NULL, NULL));
    GIVES(LMT_ERR_UNKNOWN_PEER, lmt_device_send(device, foreign, NULL, 0, &part, 1, 0, &request));
    GIVES(LMT_ERR_UNKNOWN_PEER, lmt_device_on_packet(device, foreign, memory, 4, &arrival));
    GIVES(LMT_ERR_UNKNOWN_PEER,
          lmt_device_explain(device, foreign, 1, 0, LMT_FORMAT_TEXT, memory, sizeof memory, NULL));
    GIVES(LMT_ERR_INVALID, lmt_device_explain(device, device_peer, 1, 0, 9, memory, sizeof memory, NULL));
    GIVES(LMT_ERR_INVALID,
          lmt_device_send(device, device_peer, memory, LMT_ENVELOPE_MAX_BYTES + 1, &part, 1, 0, &request));
    GIVES(LMT_ERR_INVALID, lmt_device_send(device, device_peer, NULL, 0, &part, 1, LMT_SEND_SYNCHRONOUS, &request));
    memset(memory, 0xff, 100);
    GIVES(LMT_ERR_BAD_PACKET, lmt_device_on_packet(device, device_peer, memory, 100, &arrival));
    GIVES(LMT_ERR_BAD_PACKET, lmt_device_on_packet(device, device_peer, NULL, 0, &arrival));
    GIVES(LMT_ERR_UNKNOWN_PEER,
          lmt_device_on_packet(device, (lmt_peer){device_peer.owner, 50}, memory, 4, &arrival));
    flag = false;
    OK(lmt_device_test(device, none, &flag, NULL));
    CHECK(flag);
    flag = false;
    GIVES(LMT_ERR_UNKNOWN_REQUEST, lmt_device_test(device, (lmt_request){device_peer.owner, 77}, &flag, NULL));
    CHECK(flag);
    GIVES(LMT_ERR_UNKNOWN_REQUEST, lmt_device_cancel(device, none));
    OK(lmt_device_statistics(device, (lmt_counters[40]){{{0}, 0, 0, 0, 0, 0, 0}}, 40, &number));
    GIVES(LMT_ERR_TOO_SHORT, lmt_device_statistics(device, NULL, 0, &number));
    OK(lmt_device_close(stranger));
    GIVES(LMT_ERR_HANDLE, lmt_device_close(stranger));
}

/* A message of one endpoint is given to another. */
static void others_messages(void)
{
    lmt_message *message = NULL;
    OK(lmt_isend(endpoint, myself, 8, memory, 10, 0, &request));
    while (!message)
        OK(lmt_improbe(endpoint, myself, 8, 0, &message, NULL));
    lmt_request receive;
    GIVES(LMT_ERR_FOREIGN_MESSAGE, lmt_imrecv(other, message, memory + 100, 10, &receive));
    GIVES(LMT_ERR_HANDLE, lmt_progress((lmt_endpoint *)message, NULL));
    GIVES(LMT_ERR_HANDLE, lmt_announcement_drop((lmt_announcement *)message));
    OK(lmt_imrecv(endpoint, message, memory + 100, 10, &receive)); /* It is still there. */
    OK(lmt_wait(endpoint, receive, -1, NULL));
    OK(lmt_wait(endpoint, request, -1, NULL));
    /* One that is held when its endpoint closes. */
    lmt_endpoint *brief;
    OK(lmt_endpoint_create(NULL, &brief));
    lmt_peer self = insert_oneself(brief);
    OK(lmt_isend(brief, self, 8, memory, 10, 0, &request));
    message = NULL;
    while (!message)
        OK(lmt_improbe(brief, self, 8, 0, &message, NULL));
    OK(lmt_endpoint_close(brief));
    GIVES(LMT_ERR_HANDLE, lmt_imrecv(brief, message, memory, 10, &receive));
    GIVES(LMT_ERR_FOREIGN_MESSAGE, lmt_imrecv(endpoint, message, memory, 10, &receive));
    OK(lmt_message_discard(message));
    GIVES(LMT_ERR_HANDLE, lmt_wait(brief, request, -1, NULL));
    GIVES(LMT_ERR_UNKNOWN_REQUEST, lmt_wait(endpoint, request, -1, NULL));
}

/* What a thread waits for in vain. */
struct vain {
    lmt_endpoint *endpoint;
    lmt_request receive;
    int timeout_ms;
};

static void *waits(void *with)
{
    struct vain *vain = with;
    char limit[32];
    lmt_code code;
    do /* The other thread calls all the time. */
        code = lmt_wait(vain->endpoint, vain->receive, vain->timeout_ms, NULL);
    while (code == LMT_ERR_BUSY);
    CHECK(code == LMT_ERR_TIMEOUT);
    /* The last error is this thread's. */
    snprintf(limit, sizeof limit, "%d ms", vain->timeout_ms);
    CHECK(strstr(lmt_last_error(), limit));
    return NULL;
}

/* One thread waits within the library, another calls. */
static void two_threads(void)
{
    pthread_t thread;
    struct vain vain = {.endpoint = endpoint, .timeout_ms = 400};
    lmt_code code = LMT_OK;
    OK(lmt_irecv(endpoint, myself, 77, 0, memory, 1, &vain.receive));
    CHECK(pthread_create(&thread, NULL, waits, &vain) == 0);
    double start = seconds();
    while (code == LMT_OK && seconds() - start < 5)
        code = lmt_progress(endpoint, NULL);
    GIVES(LMT_ERR_BUSY, code);
    CHECK(strstr(lmt_last_error(), "another thread"));
    OK(lmt_progress(other, NULL)); /* Others can be used. */
    CHECK(pthread_join(thread, NULL) == 0);
    OK(lmt_cancel(endpoint, vain.receive));
    GIVES(LMT_ERR_CANCELLED, lmt_wait(endpoint, vain.receive, -1, NULL));
}

/* A child that was forked has no part of its parent's objects, and makes its own. */
static void forked(void)
{
    lmt_request receive, held;
    lmt_message *message = NULL;
    lmt_options *options;
    void *mine;
    pthread_t thread;
    OK(lmt_isend(endpoint, myself, 79, "held", 5, 0, &held));
    while (!message)
        OK(lmt_improbe(endpoint, myself, 79, 0, &message, NULL));
    OK(lmt_options_create(&options));
    OK(lmt_alloc(100, &mine));
    OK(lmt_irecv(endpoint, myself, 78, 0, memory, 1, &receive));
    struct vain vain = {.endpoint = other, .timeout_ms = 1500};
    OK(lmt_irecv(other, LMT_ANY_PEER, 4242, 0, NULL, 0, &vain.receive));
    CHECK(pthread_create(&thread, NULL, waits, &vain) == 0);
    while (lmt_progress(other, NULL) != LMT_ERR_BUSY)
        ;
    pid_t child = fork();
    if (child == 0) {
        lmt_endpoint *own;
        alarm(TIME_LIMIT_S);
        GIVES(LMT_ERR_FORKED, lmt_progress(endpoint, NULL));
        GIVES(LMT_ERR_FORKED, lmt_send(endpoint, myself, 78, "x", 1, 0));
        GIVES(LMT_ERR_FORKED, lmt_wait(endpoint, receive, -1, NULL));
        GIVES(LMT_ERR_FORKED, lmt_cancel(endpoint, receive));
        flag = true;
        GIVES(LMT_ERR_FORKED, lmt_test(endpoint, receive, &flag, NULL));
        CHECK(!flag);
        GIVES(LMT_ERR_FORKED, lmt_is_done(endpoint, receive, &flag));
        GIVES(LMT_ERR_FORKED, lmt_endpoint_address(endpoint, memory, sizeof memory, NULL));
        GIVES(LMT_ERR_FORKED, lmt_explain(endpoint, myself, 1, 0, LMT_FORMAT_TEXT, memory, sizeof memory, NULL));
        GIVES(LMT_ERR_FORKED, lmt_wait_descriptor(endpoint, &(int){0}));
        GIVES(LMT_ERR_FORKED, lmt_message_discard(message));
        GIVES(LMT_ERR_FORKED, lmt_endpoint_create(options, &own));
        GIVES(LMT_ERR_FORKED, lmt_options_destroy(options));
        GIVES(LMT_ERR_FORKED, lmt_free(mine));
        GIVES(LMT_ERR_FORKED, lmt_endpoint_close(endpoint));
        GIVES(LMT_ERR_HANDLE, lmt_endpoint_close(endpoint));
        GIVES(LMT_ERR_FORKED, lmt_device_progress(device, NULL));
        GIVES(LMT_ERR_FORKED, lmt_device_on_packet(device, device_peer, "x", 1, &(lmt_arrival){0}));
        /* A thread of the parent was in a call with it. */
        GIVES(LMT_ERR_FORKED, lmt_progress(other, NULL));
        GIVES(LMT_ERR_FORKED, lmt_endpoint_close(other));
        GIVES(LMT_ERR_FORKED, lmt_endpoint_close(other));
        OK(lmt_endpoint_create(NULL, &own));
        OK(lmt_endpoint_close(own));
        exit(0);
    }
    int ended;
    CHECK(child > 0 && waitpid(child, &ended, 0) == child);
    CHECK(WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    OK(lmt_message_discard(message));
    OK(lmt_wait(endpoint, held, -1, NULL));
    OK(lmt_options_destroy(options));
    OK(lmt_free(mine));
    OK(lmt_send(endpoint, myself, 78, "y", 1, 0));
    OK(lmt_wait(endpoint, receive, -1, NULL));
    CHECK(memory[0] == 'y');
}

int main(void)
{
    struct address address;
    alarm(TIME_LIMIT_S);
    errors();
    OK(lmt_endpoint_create(NULL, &endpoint));
    OK(lmt_endpoint_create(NULL, &other));
    OK(lmt_device_create(NULL, take, NULL, &device));
    myself = insert_oneself(endpoint);
    lmt_device *far;
    OK(lmt_device_create(NULL, take, NULL, &far));
    OK(lmt_device_address(far, address.bytes, sizeof address.bytes, &address.length));
    OK(lmt_device_insert_peer(device, address.bytes, address.length, &device_peer));

    comparing();
    misaligned();
    options();
    group();
    lmt_endpoint *closed;
    lmt_device *closed_device;
    OK(lmt_endpoint_create(NULL, &closed));
    OK(lmt_endpoint_close(closed));
    OK(lmt_device_create(NULL, take, NULL, &closed_device));
    OK(lmt_device_close(closed_device));
    endpoints(NULL, LMT_ERR_NULL);
    endpoints(closed, LMT_ERR_HANDLE);
    endpoints((lmt_endpoint *)device, LMT_ERR_HANDLE);
    endpoints((lmt_endpoint *)(void *)&address, LMT_ERR_HANDLE);
    devices(NULL, LMT_ERR_NULL);
    devices(closed_device, LMT_ERR_HANDLE);
    devices((lmt_device *)endpoint, LMT_ERR_HANDLE);
    devices((lmt_device *)(void *)memory, LMT_ERR_HANDLE);
    nulls();
    nulls_at_the_device();
    values();
    values_at_the_device();
    others_messages();
    two_threads();
    forked();

    OK(lmt_device_close(far));
    OK(lmt_device_close(device));
    OK(lmt_endpoint_close(other));
    OK(lmt_endpoint_close(endpoint));
    GIVES(LMT_ERR_HANDLE, lmt_send(endpoint, myself, 1, "x", 1, 0));
    return 0;
}
