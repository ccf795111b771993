/* What applications do among more ranks than cores: a ring of MPI_Sendrecv, an all-to-all,
   pairs of nonblocking calls, a ring whose receivers look by MPI_Iprobe, MPI_Put into the
   next rank's window between fences, and an allreduce. Prints the microseconds of an iteration, a line a length.
   Each message differs from the one before, and what came is looked at. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 19, PATTERNS = 6 };
static const char *names[PATTERNS] = {"ring", "alltoall", "pairs", "probe", "fence", "allreduce"};
/* Of the last three, whose time is that of many short messages, the first two lengths. */
enum { LONG = 3, SHORT_MOST = 16384 };
/* Beside the eager limit of MPIs over libfabric, too. */
static const int lengths[] = {1024, 16384, 65536, 262144, 264000, MOST};

static int rank, ranks;
static char *window;
static MPI_Win win;

static void step(int pattern, char *from, char *to, int length)
{
    if (pattern == 0) {
        MPI_Sendrecv(from, length, MPI_CHAR, (rank + 1) % ranks, 1, to, length, MPI_CHAR,
                     (rank + ranks - 1) % ranks, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (pattern == 1) {
        MPI_Alltoall(from, length, MPI_CHAR, to, length, MPI_CHAR, MPI_COMM_WORLD);
    } else if (pattern == 2) {
        MPI_Request both[2];
        MPI_Irecv(to, length, MPI_CHAR, rank ^ 1, 2, MPI_COMM_WORLD, &both[0]);
        MPI_Isend(from, length, MPI_CHAR, rank ^ 1, 2, MPI_COMM_WORLD, &both[1]);
        MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    } else if (pattern == 3) {
        int before = (rank + ranks - 1) % ranks, is_there = 0;
        MPI_Request sent;
        MPI_Isend(from, length, MPI_CHAR, (rank + 1) % ranks, 3, MPI_COMM_WORLD, &sent);
        while (!is_there)
            MPI_Iprobe(before, 3, MPI_COMM_WORLD, &is_there, MPI_STATUS_IGNORE);
        MPI_Recv(to, length, MPI_CHAR, before, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&sent, MPI_STATUS_IGNORE);
    } else if (pattern == 4) {
        MPI_Put(from, length, MPI_CHAR, (rank + 1) % ranks, 0, length, MPI_CHAR, win);
        MPI_Win_fence(0, win);
        memcpy(to, window, (size_t)length);
        MPI_Win_fence(0, win);
    } else {
        MPI_Allreduce(from, to, length, MPI_CHAR, MPI_MAX, MPI_COMM_WORLD);
    }
}

static double run(int pattern, char *from, char *to, int length, int iterations)
{
    size_t parts = pattern == 1 ? (size_t)ranks : 1;
    MPI_Barrier(MPI_COMM_WORLD);
    double begun = MPI_Wtime();
    for (int i = 0; i < iterations; i++) {
        memset(from, i, parts * (size_t)length);
        step(pattern, from, to, length);
        for (size_t part = 0; part < parts; part++)
            if (to[part * (size_t)length] != (char)i || to[(part + 1) * (size_t)length - 1] != (char)i)
                MPI_Abort(MPI_COMM_WORLD, 1);
    }
    /* Of the slowest: a pair that had both cores to itself says nothing of the others. */
    double us = (MPI_Wtime() - begun) / iterations * 1e6;
    MPI_Allreduce(MPI_IN_PLACE, &us, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return us;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    char *from = malloc((size_t)ranks * MOST), *to = malloc((size_t)ranks * MOST);
    int iterations = argc > 1 ? atoi(argv[1]) : 60;
    if (!from || !to)
        return 1;
    MPI_Win_allocate(MOST, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window, &win);
    MPI_Win_fence(0, win);
    for (int pattern = 0; pattern < PATTERNS; pattern++)
        run(pattern, from, to, 1024, 3); /* All are connected. */
    for (size_t at = 0; at < sizeof lengths / sizeof *lengths; at++) {
        int patterns = lengths[at] <= SHORT_MOST ? PATTERNS : LONG;
        if (rank == 0)
            printf("us %d", lengths[at]);
        for (int pattern = 0; pattern < patterns; pattern++) {
            double us = run(pattern, from, to, lengths[at], iterations);
            if (rank == 0)
                printf(" %s %.1f", names[pattern], us);
        }
        if (rank == 0)
            printf("\n");
    }
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
