/* The calls of libfabric that MPIs make for short messages, and nothing else: what a provider
   takes of an MPI's time. Two processes, each on a core of its own.

     cc -O2 -o calls calls.c -lfabric
     FI_PROVIDER_PATH=FOLDER LMT_FI=1 ./calls lmt openmpi   (FOLDER has liblmt-fi.so)
     ./calls shm openmpi

   First the provider, then whose calls:
     openmpi   fi_tinjectdata or fi_tsenddata, fi_trecv, fi_cq_read of up to 100
     mpich     the same, fi_cq_read of up to 8
     intelmpi  fi_tinject or fi_tsend, fi_trecv, fi_cq_readfrom of up to 8
   and how many rounds of each pattern, if not 20000.
   Prints a line for each pattern and length: microseconds of half a round trip, of a send and
   a receive both ways at once, and of a message where 64 are in flight. The sender writes what
   it sends, and the receiver looks at what it received. */
#define _GNU_SOURCE
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { IN_FLIGHT = 64, MOST_BYTES = 4096, MOST_READ = 100, TURNS = 7, LIMIT_S = 120 };

static struct fid_ep *ep;
static struct fid_cq *cq;
static fi_addr_t peer;
static size_t inject_most_bytes;
static int with_data, most_read, with_source, rank;
static pid_t child;
static char *sent, *received;
static struct fi_context2 contexts[2][IN_FLIGHT];
/* What has ended: sends, receives. */
static unsigned long ended[2];

static void fail(const char *what, long error)
{
    fprintf(stderr, "%s: %s\n", what, fi_strerror((int)-error));
    exit(1);
}

static void check(const char *what, long error)
{
    if (error < 0)
        fail(what, error);
}

static void poll_queue(void)
{
    struct fi_cq_tagged_entry entries[MOST_READ];
    fi_addr_t sources[MOST_READ];
    ssize_t count = with_source ? fi_cq_readfrom(cq, entries, most_read, sources) : fi_cq_read(cq, entries, most_read);
    if (count == -FI_EAGAIN)
        return;
    check("fi_cq_read", count);
    for (ssize_t at = 0; at < count; at++)
        ended[(entries[at].flags & FI_RECV) != 0]++;
}

/* Until so many sends or receives have ended. */
static void await(int receives, unsigned long count)
{
    while (ended[receives] < count)
        poll_queue();
}

static void begin_send(char *bytes, size_t length, int at)
{
    for (;;) {
        ssize_t error;
        if (length <= inject_most_bytes) {
            error = with_data ? fi_tinjectdata(ep, bytes, length, rank, peer, 1) : fi_tinject(ep, bytes, length, peer, 1);
            if (!error)
                ended[0]++; /* An injected message has no completion. */
        } else {
            error = with_data ? fi_tsenddata(ep, bytes, length, NULL, rank, peer, 1, &contexts[0][at])
                              : fi_tsend(ep, bytes, length, NULL, peer, 1, &contexts[0][at]);
        }
        if (!error)
            return;
        if (error != -FI_EAGAIN)
            fail("a send", error);
        poll_queue();
    }
}

static void begin_receive(char *bytes, size_t length, int at)
{
    for (;;) {
        ssize_t error = fi_trecv(ep, bytes, length, NULL, peer, 1, 0, &contexts[1][at]);
        if (!error)
            return;
        if (error != -FI_EAGAIN)
            fail("a receive", error);
        poll_queue();
    }
}

static void send_one(size_t length, int value)
{
    memset(sent, value, length);
    unsigned long until = ended[0] + 1;
    begin_send(sent, length, 0);
    await(0, until);
}

static void is_value(const char *bytes, size_t length, int value)
{
    for (size_t at = 0; at < length; at++)
        if (bytes[at] != (char)value) {
            fprintf(stderr, "byte %zu is not that of message %d\n", at, value);
            exit(1);
        }
}

static void receive_one(size_t length, int value)
{
    unsigned long until = ended[1] + 1;
    begin_receive(received, length, 0);
    await(1, until);
    is_value(received, length, value);
}

static void ping_pong(size_t length, int value)
{
    if (rank == 0) {
        send_one(length, value);
        receive_one(length, value);
    } else {
        receive_one(length, value);
        send_one(length, value);
    }
}

static void both_ways(size_t length, int value)
{
    unsigned long sends = ended[0] + 1, receives = ended[1] + 1;
    begin_receive(received, length, 0);
    memset(sent, value, length);
    begin_send(sent, length, 0);
    await(0, sends);
    await(1, receives);
    is_value(received, length, value);
}

/* IN_FLIGHT messages one way, and a short one back. */
static void window(size_t length, int value)
{
    if (rank == 0) {
        unsigned long until = ended[0] + IN_FLIGHT;
        for (int at = 0; at < IN_FLIGHT; at++) {
            memset(sent + at * length, value, length);
            begin_send(sent + at * length, length, at);
        }
        await(0, until);
        receive_one(1, value);
    } else {
        unsigned long until = ended[1] + IN_FLIGHT;
        for (int at = 0; at < IN_FLIGHT; at++)
            begin_receive(received + at * length, length, at);
        await(1, until);
        is_value(received, IN_FLIGHT * length, value);
        send_one(1, value);
    }
}

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1e6 + now.tv_nsec / 1e3;
}

static int by_size(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* The median of some turns, in microseconds of one of `share` parts. */
static void run(const char *name, void (*pattern)(size_t, int), size_t length, int times, double share)
{
    double us[TURNS];
    for (int turn = 0; turn < TURNS; turn++) {
        double begun = now_us();
        for (int i = 0; i < times; i++)
            pattern(length, i);
        us[turn] = (now_us() - begun) / times / share;
    }
    qsort(us, TURNS, sizeof *us, by_size);
    if (rank == 0)
        printf("%-9s %5zu B  %.3f us\n", name, length, us[TURNS / 2]);
}

static void open_endpoint(char *provider, int other)
{
    struct fi_info *hints = fi_allocinfo(), *info;
    hints->caps = FI_TAGGED | FI_DIRECTED_RECV;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
    hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
    hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;
    hints->fabric_attr->prov_name = strdup(provider);
    check("fi_getinfo", fi_getinfo(FI_VERSION(1, 14), NULL, NULL, 0, hints, &info));
    inject_most_bytes = info->tx_attr->inject_size < MOST_BYTES ? info->tx_attr->inject_size : MOST_BYTES;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *av;
    check("fi_fabric", fi_fabric(info->fabric_attr, &fabric, NULL));
    check("fi_domain", fi_domain(fabric, info, &domain, NULL));
    struct fi_av_attr av_attr = {.type = FI_AV_MAP};
    check("fi_av_open", fi_av_open(domain, &av_attr, &av, NULL));
    struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED, .size = 1024};
    check("fi_cq_open", fi_cq_open(domain, &cq_attr, &cq, NULL));
    check("fi_endpoint", fi_endpoint(domain, info, &ep, NULL));
    check("fi_ep_bind", fi_ep_bind(ep, &av->fid, 0));
    check("fi_ep_bind", fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
    check("fi_enable", fi_enable(ep));
    char name[512];
    size_t bytes = sizeof name;
    check("fi_getname", fi_getname(&ep->fid, name, &bytes));
    if (write(other, name, sizeof name) != sizeof name || recv(other, name, sizeof name, MSG_WAITALL) != sizeof name)
        fail("the other process", -FI_EIO);
    if (fi_av_insert(av, name, 1, &peer, 0, NULL) != 1)
        fail("fi_av_insert", -FI_EINVAL);
}

/* The other process has ended: if not well, this one would wait for ever. */
static void on_child(int signal)
{
    (void)signal;
    int status = 0;
    if (waitpid(child, &status, WNOHANG) > 0 && status != 0) {
        static const char why[] = "the other process has failed\n";
        if (write(STDERR_FILENO, why, sizeof why - 1) < 0)
            _exit(2);
        _exit(1);
    }
}

/* Onto the core of this rank, of those that this process may have; as it is where there is one. */
static void pin(void)
{
    cpu_set_t allowed, core;
    CPU_ZERO(&core);
    if (sched_getaffinity(0, sizeof allowed, &allowed) || CPU_COUNT(&allowed) < 2)
        return;
    for (int cpu = 0, at = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &allowed) && at++ == rank)
            CPU_SET(cpu, &core);
    if (sched_setaffinity(0, sizeof core, &core))
        perror("sched_setaffinity");
}

int main(int argc, char **argv)
{
    const char *whose = argc > 2 ? argv[2] : "openmpi";
    int rounds = argc > 3 ? atoi(argv[3]) : 20000;
    if (argc < 2 || rounds < 1 || (strcmp(whose, "openmpi") && strcmp(whose, "mpich") && strcmp(whose, "intelmpi"))) {
        fprintf(stderr, "calls PROVIDER [openmpi | mpich | intelmpi [ROUNDS]]\n");
        return 2;
    }
    with_source = !strcmp(whose, "intelmpi");
    with_data = !with_source;
    most_read = strcmp(whose, "openmpi") ? 8 : MOST_READ;
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
        return 1;
    signal(SIGCHLD, on_child);
    pid_t parent = getpid();
    child = fork();
    if (child < 0) {
        perror("fork");
        return 1;
    }
    rank = child == 0;
    if (rank == 1) {
        signal(SIGCHLD, SIG_DFL);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            return 1;
    }
    alarm(LIMIT_S);
    pin();
    sent = aligned_alloc(4096, IN_FLIGHT * MOST_BYTES);
    received = aligned_alloc(4096, IN_FLIGHT * MOST_BYTES);
    memset(sent, 1, IN_FLIGHT * MOST_BYTES);
    memset(received, 1, IN_FLIGHT * MOST_BYTES);
    open_endpoint(argv[1], ends[rank]);
    both_ways(8, 1);
    static const size_t lengths[] = {8, 512, 4096};
    for (size_t at = 0; at < sizeof lengths / sizeof *lengths; at++) {
        run("pingpong", ping_pong, lengths[at], rounds, 2);
        run("sendrecv", both_ways, lengths[at], rounds, 1);
        run("in flight", window, lengths[at], (rounds + 19) / 20, IN_FLIGHT);
    }
    fflush(stdout);
    if (rank == 1)
        _exit(0);
    /* on_child takes its end, and ends this one with 1 if it has failed. */
    int status = 0;
    return waitpid(child, &status, 0) == child && status != 0;
}
