// The header in C++: a message to oneself.
#include <cstdio>
#include <cstring>

#include <lmt.h>

static bool good(lmt_code code)
{
    if (code != LMT_OK)
        std::fprintf(stderr, "%s: %s\n", lmt_strerror(code), lmt_last_error());
    return code == LMT_OK;
}

int main()
{
    lmt_endpoint *endpoint = nullptr;
    unsigned char address[LMT_ADDRESS_MAX_BYTES];
    std::size_t length = 0;
    lmt_peer myself;
    lmt_request receive;
    lmt_status status;
    char text[6] = "";
    if (!good(lmt_endpoint_create(nullptr, &endpoint)) ||
        !good(lmt_endpoint_address(endpoint, address, sizeof address, &length)) ||
        !good(lmt_peer_insert(endpoint, address, length, &myself)) ||
        !good(lmt_irecv(endpoint, LMT_ANY_PEER, 7, 0, text, sizeof text, &receive)) ||
        !good(lmt_send(endpoint, myself, 7, "hello", 6, LMT_HINT_WARM)) ||
        !good(lmt_wait(endpoint, receive, -1, &status)) || status.bytes != 6 ||
        lmt_send(endpoint, LMT_ANY_PEER, 7, "hello", 6, 0) != LMT_ERR_UNKNOWN_PEER ||
        !good(lmt_endpoint_close(endpoint)))
        return 1;
    std::puts(text);
    return std::strcmp(text, "hello") != 0;
}
