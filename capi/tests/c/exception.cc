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
    lmt_device *device = nullptr, *far = nullptr;
    unsigned char address[LMT_ADDRESS_MAX_BYTES];
    std::size_t length = 0;
    lmt_peer peer;
    lmt_request request;
    char data[100] = "";
    struct iovec part = {data, sizeof data};
    alarm(20);
    good(lmt_device_create(nullptr, throws, nullptr, &device));
    good(lmt_device_create(nullptr, takes, nullptr, &far));
    good(lmt_device_address(far, address, sizeof address, &length));
    good(lmt_device_insert_peer(device, address, length, &peer));
    good(lmt_device_send(device, peer, nullptr, 0, &part, 1, 0, &request));
    try {
        for (;;) {
            good(lmt_device_progress(device, nullptr));
            good(lmt_device_progress(far, nullptr));
        }
    } catch (...) {
        std::puts("it has passed");
    }
    return 3;
}
