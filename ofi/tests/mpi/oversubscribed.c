/* What applications do among more ranks than cores: a ring of MPI_Sendrecv, an all-to-all,
   and pairs of nonblocking calls. Prints the microseconds of an iteration, a line a length.
   Each message differs from the one before, and what came is looked at. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ITERATIONS = 60, MOST = 1 << 19, PATTERNS = 3 };
static const int lengths[] = {1024, 16384, 65536, 264000, MOST};

static int rank, ranks;

static void step(int pattern, char *from, char *to, int length)
{
    if (pattern == 0) {
        MPI_Sendrecv(from, length, MPI_CHAR, (rank + 1) % ranks, 1, to, length, MPI_CHAR,
                     (rank + ranks - 1) % ranks, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (pattern == 1) {
        MPI_Alltoall(from, length, MPI_CHAR, to, length, MPI_CHAR, MPI_COMM_WORLD);
    } else {
        MPI_Request both[2];
        MPI_Irecv(to, length, MPI_CHAR, rank ^ 1, 2, MPI_COMM_WORLD, &both[0]);
        MPI_Isend(from, length, MPI_CHAR, rank ^ 1, 2, MPI_COMM_WORLD, &both[1]);
        MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
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
    return (MPI_Wtime() - begun) / iterations * 1e6;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    char *from = malloc((size_t)ranks * MOST), *to = malloc((size_t)ranks * MOST);
    if (!from || !to)
        return 1;
    for (int pattern = 0; pattern < PATTERNS; pattern++)
        run(pattern, from, to, 1024, 3); /* All are connected. */
    for (size_t at = 0; at < sizeof lengths / sizeof *lengths; at++) {
        double us[PATTERNS];
        for (int pattern = 0; pattern < PATTERNS; pattern++)
            us[pattern] = run(pattern, from, to, lengths[at], ITERATIONS);
        if (rank == 0)
            printf("us %d ring %.1f alltoall %.1f pairs %.1f\n", lengths[at], us[0], us[1], us[2]);
    }
    MPI_Finalize();
    return 0;
}
