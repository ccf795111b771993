// An exception that leaves send_packet ends the process.
#include <csignal>
#include <cstdio>
#include <stdexcept>
#include <unistd.h>

#include <lmt.h>

static int throws(void *, lmt_peer, const void *, std::size_t)
{
    std::puts("thrown");
    std::fflush(stdout);
    throw std::runtime_error("it must not pass");
}

static int takes(void *, lmt_peer, const void *, std::size_t)
{
    return LMT_OK;
}

static void good(lmt_code code)
{
    if (code != LMT_OK) {
        std::fprintf(stderr, "%s: %s\n", lmt_strerror(code), lmt_last_error());
        _exit(2);
    }
}

int main()
{
    lmt_door *door = nullptr, *far = nullptr;
    unsigned char address[LMT_ADDRESS_MAX_BYTES];
    std::size_t length = 0;
    lmt_peer peer;
    lmt_request request;
    char data[100] = "";
    struct iovec part = {data, sizeof data};
    alarm(20);
    good(lmt_door_create(nullptr, throws, nullptr, &door));
    good(lmt_door_create(nullptr, takes, nullptr, &far));
    good(lmt_door_address(far, address, sizeof address, &length));
    good(lmt_door_insert_peer(door, address, length, &peer));
    good(lmt_door_send(door, peer, nullptr, 0, &part, 1, 0, &request));
    try {
        for (;;) {
            good(lmt_door_progress(door, nullptr));
            good(lmt_door_progress(far, nullptr));
        }
    } catch (...) {
        std::puts("it has passed");
    }
    return 3;
}
