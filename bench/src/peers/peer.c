/* The benchmark of `lmt compare --peers` over MPI: what `lmt bench` does, with
 * the same buffers, the same order of calls and the same clock.
 *
 * Each rank connects to the Unix socket named on the command line, says who it
 * is, and then does what it is told there, one line each:
 *
 *   setup CPU BYTES SECONDS      pin this rank (-1: not), get two buffers of so
 *                                many bytes ready; no later line may take longer
 *   turn PATTERN BYTES WINDOW ITERATIONS WARM_UP TOUCH ROTATE
 *                                measure; the answer is "ok SECONDS". A pattern
 *                                collective:OPERATION has a barrier before each
 *                                iteration, outside the time
 *   end                          finish
 *
 * In between a rank sleeps in read(2), so that it takes no time from whoever has
 * its turn. When the socket is closed it ends at once; when it hangs, SIGALRM
 * ends it. */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { DATA_TAG = 1, RIGHT_TAG = 2, LEFT_TAG = 3, ANSWER_TAG = 4 };
#define COLLECTIVE "collective:"
enum { LINE_BYTES = 256, SHOWN_VERSION_BYTES = 80 };

/* A buffer cut into groups of `window` messages, used one group after the other;
 * with a single group the same bytes are used again and again. */
struct arena {
    char *memory;
    size_t memory_bytes;
    size_t bytes;
    size_t stride;
    size_t window;
    size_t groups;
    size_t next;
    size_t used_bytes;
};

static int rank, ranks;
static int server = -1;
static struct arena outgoing, incoming;
static int in_use;
/* Keeps the compiler from leaving out what is read. */
static volatile unsigned long sum_of_all;

static void answer(const char *line)
{
    size_t left = strlen(line);
    while (left > 0) {
        ssize_t written = write(server, line, left);
        if (written <= 0)
            _exit(1);
        line += written;
        left -= (size_t)written;
    }
}

static void give_up(const char *sentence)
{
    char line[LINE_BYTES];
    snprintf(line, sizeof line, "error %s\n", sentence);
    answer(line);
    _exit(1);
}

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* The next group's first byte. */
static char *next_group(struct arena *arena)
{
    char *start = arena->memory + arena->next * arena->stride * arena->window;
    arena->next = arena->next + 1 == arena->groups ? 0 : arena->next + 1;
    return start;
}

static int cut(struct arena *arena, size_t bytes, size_t window, int rotate)
{
    size_t least = bytes > 0 ? bytes : 1;
    arena->bytes = bytes;
    arena->window = window;
    arena->stride = (least + 63) / 64 * 64;
    size_t group = arena->stride * window;
    arena->groups = arena->memory_bytes / group;
    if (!rotate && arena->groups > 1)
        arena->groups = 1;
    if (arena->groups == 0)
        return 0;
    /* Rotation goes on where it stopped. */
    arena->next = (arena->used_bytes + group - 1) / group % arena->groups;
    return 1;
}

static void leave(struct arena *arena)
{
    arena->used_bytes = arena->next * arena->stride * arena->window;
}

static void before_send(char *data, size_t bytes, unsigned long number)
{
    if (in_use) {
        memset(data, (int)(number & 0xff), bytes);
        __asm__ volatile("" : : "r"(data) : "memory");
    }
}

static void after_receive(const char *data, size_t bytes)
{
    if (in_use) {
        /* Every byte, as words of 8 bytes; handling.rs does the same. */
        unsigned long sum = 0;
        size_t at = 0;
        for (; at + sizeof(unsigned long) <= bytes; at += sizeof(unsigned long)) {
            unsigned long word;
            memcpy(&word, data + at, sizeof word);
            sum += word;
        }
        for (; at < bytes; at++)
            sum += (unsigned char)data[at];
        sum_of_all += sum;
    }
}

static void send_one(int to, unsigned long number)
{
    char *data = next_group(&outgoing);
    before_send(data, outgoing.bytes, number);
    MPI_Send(data, (int)outgoing.bytes, MPI_BYTE, to, DATA_TAG, MPI_COMM_WORLD);
}

static void receive_one(int from)
{
    char *data = next_group(&incoming);
    MPI_Recv(data, (int)incoming.bytes, MPI_BYTE, from, DATA_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    after_receive(data, incoming.bytes);
}

static void pingpong(unsigned long iterations)
{
    for (unsigned long number = 0; rank < 2 && number < iterations; number++) {
        if (rank == 0)
            send_one(1, number);
        receive_one(1 - rank);
        if (rank == 1)
            send_one(0, number);
    }
}

static MPI_Request *requests;

/* Sends message i of the next group to to[i] with tag sent[i] and receives message
 * i of the next group from from[i] with tag received[i], all at once; receives are
 * posted first. */
static void transfer(size_t sends, const int *to, const int *sent, size_t receives, const int *from,
                     const int *received, unsigned long first_number, unsigned long step)
{
    char *out = sends > 0 ? next_group(&outgoing) : NULL;
    char *in = receives > 0 ? next_group(&incoming) : NULL;
    int bytes = (int)outgoing.bytes;
    for (size_t i = 0; i < sends; i++)
        before_send(out + i * outgoing.stride, outgoing.bytes, first_number + i * step);
    int posted = 0;
    for (size_t i = 0; i < receives; i++)
        MPI_Irecv(in + i * incoming.stride, bytes, MPI_BYTE, from[i], received[i], MPI_COMM_WORLD,
                  &requests[posted++]);
    for (size_t i = 0; i < sends; i++)
        MPI_Isend(out + i * outgoing.stride, bytes, MPI_BYTE, to[i], sent[i], MPI_COMM_WORLD,
                  &requests[posted++]);
    MPI_Waitall(posted, requests, MPI_STATUSES_IGNORE);
    for (size_t i = 0; i < receives; i++)
        after_receive(in + i * incoming.stride, incoming.bytes);
}

static void pingping(unsigned long iterations)
{
    int partner = 1 - rank, tag = DATA_TAG;
    for (unsigned long number = 0; rank < 2 && number < iterations; number++)
        transfer(1, &partner, &tag, 1, &partner, &tag, number, 1);
}

static void exchange(unsigned long iterations)
{
    int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
    int to[2] = {right, left}, from[2] = {left, right}, tags[2] = {RIGHT_TAG, LEFT_TAG};
    for (unsigned long number = 0; number < iterations; number++)
        transfer(2, to, tags, 2, from, tags, number, 0);
}

/* The lists of ranks and tags for windows and all-to-all. */
static int *to_ranks, *from_ranks, *data_tags;

static void windows(unsigned long iterations, int both_ways)
{
    size_t window = outgoing.window;
    char bytes[4] = {0};
    int partner = 1 - rank;
    for (unsigned long number = 0; rank < 2 && number < iterations; number++) {
        size_t sends = both_ways || rank == 0 ? window : 0;
        size_t receives = both_ways || rank == 1 ? window : 0;
        transfer(sends, to_ranks, data_tags, receives, from_ranks, data_tags, number * window, 1);
        if (!both_ways && rank == 0)
            MPI_Recv(bytes, sizeof bytes, MPI_BYTE, partner, ANSWER_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (!both_ways && rank == 1)
            MPI_Send(bytes, sizeof bytes, MPI_BYTE, partner, ANSWER_TAG, MPI_COMM_WORLD);
    }
}

static void alltoall(unsigned long iterations)
{
    for (unsigned long number = 0; number < iterations; number++)
        transfer(outgoing.window, to_ranks, data_tags, incoming.window, from_ranks, data_tags, number, 0);
}

/* For all-to-all each rank begins with its right neighbour and ends with its left
 * one; in windows all messages go to the partner. */
static int list_ranks(const char *pattern, size_t window)
{
    int all = strcmp(pattern, "alltoall") == 0;
    to_ranks = realloc(to_ranks, window * sizeof *to_ranks);
    from_ranks = realloc(from_ranks, window * sizeof *from_ranks);
    data_tags = realloc(data_tags, window * sizeof *data_tags);
    requests = realloc(requests, 2 * window * sizeof *requests);
    if (!to_ranks || !from_ranks || !data_tags || !requests)
        return 0;
    for (size_t i = 0; i < window; i++) {
        int step = (int)i + 1;
        to_ranks[i] = all ? (rank + step) % ranks : 1 - rank;
        from_ranks[i] = all ? (rank + ranks - step) % ranks : 1 - rank;
        data_tags[i] = DATA_TAG;
    }
    return 1;
}

static int repeat(const char *pattern, unsigned long iterations)
{
    if (strcmp(pattern, "latency") == 0 || strcmp(pattern, "pingpong") == 0)
        pingpong(iterations);
    else if (strcmp(pattern, "pingping") == 0)
        pingping(iterations);
    else if (strcmp(pattern, "exchange") == 0)
        exchange(iterations);
    else if (strcmp(pattern, "bw") == 0)
        windows(iterations, 0);
    else if (strcmp(pattern, "bibw") == 0)
        windows(iterations, 1);
    else if (strcmp(pattern, "alltoall") == 0)
        alltoall(iterations);
    else
        return 0;
    return 1;
}

/* The collective operations, rooted in rank 0: how many blocks a call has on either
 * side on each rank, where `all` stands for one for each rank, and which ranks have
 * the side. */
enum side { all, one };
enum who { everybody, root_only, others_only };
struct operation {
    const char *name;
    enum side in, out;
    enum who reads, writes;
};

static const struct operation operations[] = {
    {"barrier", one, one, root_only, root_only},
    {"bcast", one, one, root_only, others_only},
    {"scatter", all, one, root_only, everybody},
    {"gather", one, all, everybody, root_only},
    {"allgather", one, all, everybody, everybody},
    {"alltoall", all, all, everybody, everybody},
    {"reduce", one, one, everybody, root_only},
    {"allreduce", one, one, everybody, everybody},
    {"reduce_scatter", all, one, everybody, everybody},
    {"scan", one, one, everybody, everybody},
    {"exscan", one, one, everybody, everybody},
};

static int has(enum who who)
{
    return who == everybody || (rank == 0) == (who == root_only);
}

/* Sizes are those of a block; reductions are sums of floats. */
static void call(const char *name, char *in, char *out, int bytes)
{
    MPI_Comm world = MPI_COMM_WORLD;
    int floats = bytes / (int)sizeof(float);
    if (strcmp(name, "barrier") == 0)
        MPI_Barrier(world);
    else if (strcmp(name, "bcast") == 0)
        MPI_Bcast(rank == 0 ? in : out, bytes, MPI_BYTE, 0, world);
    else if (strcmp(name, "scatter") == 0)
        MPI_Scatter(in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, 0, world);
    else if (strcmp(name, "gather") == 0)
        MPI_Gather(in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, 0, world);
    else if (strcmp(name, "allgather") == 0)
        MPI_Allgather(in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, world);
    else if (strcmp(name, "alltoall") == 0)
        MPI_Alltoall(in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, world);
    else if (strcmp(name, "reduce") == 0)
        MPI_Reduce(in, out, floats, MPI_FLOAT, MPI_SUM, 0, world);
    else if (strcmp(name, "allreduce") == 0)
        MPI_Allreduce(in, out, floats, MPI_FLOAT, MPI_SUM, world);
    else if (strcmp(name, "reduce_scatter") == 0)
        MPI_Reduce_scatter_block(in, out, floats, MPI_FLOAT, MPI_SUM, world);
    else if (strcmp(name, "scan") == 0)
        MPI_Scan(in, out, floats, MPI_FLOAT, MPI_SUM, world);
    else
        MPI_Exscan(in, out, floats, MPI_FLOAT, MPI_SUM, world);
}

/* The seconds of so many calls on this rank, each behind a barrier. */
static double calls(const struct operation *operation, size_t bytes, unsigned long iterations)
{
    double seconds = 0;
    for (unsigned long number = 0; number < iterations; number++) {
        char *in = next_group(&outgoing), *out = next_group(&incoming);
        MPI_Barrier(MPI_COMM_WORLD);
        double start = now_s();
        if (has(operation->reads))
            before_send(in, outgoing.bytes, number);
        call(operation->name, in, out, (int)bytes);
        if (has(operation->writes))
            after_receive(out, incoming.bytes);
        seconds += now_s() - start;
    }
    return seconds;
}

/* A turn of a collective operation. */
static double collective(const char *name, size_t bytes, unsigned long iterations, unsigned long warm_up,
                         int rotate)
{
    size_t number = sizeof operations / sizeof *operations, at = 0;
    while (at < number && strcmp(operations[at].name, name) != 0)
        at++;
    if (at == number)
        give_up("there is no such operation");
    const struct operation *operation = &operations[at];
    size_t everyone = bytes * (size_t)ranks;
    if (!cut(&outgoing, operation->in == all ? everyone : bytes, 1, rotate)
        || !cut(&incoming, operation->out == all ? everyone : bytes, 1, rotate))
        give_up("the buffers are too short for this size");
    calls(operation, bytes, warm_up);
    double seconds = calls(operation, bytes, iterations);
    leave(&outgoing);
    leave(&incoming);
    return seconds;
}

static void turn(const char *line)
{
    char pattern[32], text[LINE_BYTES];
    unsigned long bytes, window, iterations, warm_up;
    int rotate;
    if (sscanf(line, "turn %31s %lu %lu %lu %lu %d %d", pattern, &bytes, &window, &iterations, &warm_up, &in_use,
               &rotate) != 7)
        give_up("the turn cannot be read");
    if (strncmp(pattern, COLLECTIVE, strlen(COLLECTIVE)) == 0) {
        const char *name = pattern + strlen(COLLECTIVE);
        snprintf(text, sizeof text, "ok %.9f\n", collective(name, bytes, iterations, warm_up, rotate));
        answer(text);
        return;
    }
    if (window == 0 || !list_ranks(pattern, window) || !cut(&outgoing, bytes, window, rotate)
        || !cut(&incoming, bytes, window, rotate))
        give_up("the buffers are too short for this size");
    repeat(pattern, warm_up);
    MPI_Barrier(MPI_COMM_WORLD);
    double start = now_s();
    if (!repeat(pattern, iterations))
        give_up("there is no such pattern");
    double seconds = now_s() - start;
    leave(&outgoing);
    leave(&incoming);
    snprintf(text, sizeof text, "ok %.9f\n", seconds);
    answer(text);
}

/* Whether this rank now runs on that CPU only: asked of the kernel, for a launcher
 * may have its own idea. */
static int pin(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        return 0;
    CPU_ZERO(&set);
    return sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) == 1 && CPU_ISSET(cpu, &set)
           && sched_getcpu() == cpu;
}

/* Fills memory as lmt bench does: no two lines say the same, and no two seeds. */
static void mix(char *data, size_t bytes, int seed)
{
    const unsigned long odd = 0x9E3779B97F4A7C15UL;
    for (size_t at = 0; at < bytes; at += sizeof odd) {
        unsigned long word = (((unsigned long)seed << 56) + at / sizeof word) * odd;
        word = (word << 31 | word >> 33) * odd;
        /* As floats: from 2^-63 to 2. */
        word = (word & 0x3FFFFFFF3FFFFFFFUL) | 0x2000000020000000UL;
        memcpy(data + at, &word, bytes - at < sizeof word ? bytes - at : sizeof word);
    }
}

/* Memory that begins with a page, as that of lmt bench does: how fast a message is
 * copied depends on where its two ends lie in their pages. */
static void ready(struct arena *arena, size_t bytes, int seed)
{
    void *memory;
    if (posix_memalign(&memory, (size_t)sysconf(_SC_PAGESIZE), bytes) != 0)
        give_up("there is no memory for the buffers");
    arena->memory = memory;
    arena->memory_bytes = bytes;
    mix(arena->memory, bytes, seed);
}

static unsigned limit_s = 60;

static void setup(const char *line)
{
    int cpu;
    unsigned long bytes;
    char text[LINE_BYTES];
    if (sscanf(line, "setup %d %lu %u", &cpu, &bytes, &limit_s) != 3)
        give_up("the setup cannot be read");
    if (cpu >= 0 && !pin(cpu)) {
        snprintf(text, sizeof text, "rank %d cannot be pinned on CPU %d", rank, cpu);
        give_up(text);
    }
    ready(&outgoing, bytes, 2 * rank);
    ready(&incoming, bytes, 2 * rank + 1);
    answer("ok 0\n");
}

static void connect_to(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path)
        _exit(1);
    strcpy(address.sun_path, path);
    server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (server < 0 || connect(server, (struct sockaddr *)&address, sizeof address) != 0) {
        perror("the socket of lmt cannot be reached");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static void say_hello(void)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING], line[LINE_BYTES];
    int length = 0;
    MPI_Get_library_version(version, &length);
    version[strcspn(version, "\n,")] = 0;
    snprintf(line, sizeof line, "hello %d %d %.*s\n", rank, ranks, SHOWN_VERSION_BYTES, version);
    answer(line);
}

static int read_line(char *line, size_t room)
{
    size_t length = 0;
    while (length + 1 < room) {
        if (read(server, line + length, 1) != 1)
            return 0;
        if (line[length] == '\n')
            break;
        length++;
    }
    line[length] = 0;
    return 1;
}

int main(int argc, char **argv)
{
    char line[LINE_BYTES];
    /* Whoever starts this rank may die without a word; and nothing may hang. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(limit_s);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc < 2)
        MPI_Abort(MPI_COMM_WORLD, 2);
    connect_to(argv[1]);
    say_hello();
    for (;;) {
        alarm(0);
        if (!read_line(line, sizeof line))
            _exit(1);
        alarm(limit_s);
        if (strncmp(line, "setup ", 6) == 0)
            setup(line);
        else if (strncmp(line, "turn ", 5) == 0)
            turn(line);
        else if (strcmp(line, "end") == 0)
            break;
        else
            give_up("nobody knows this order");
    }
    MPI_Finalize();
    return 0;
}
