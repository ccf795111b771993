/* What the tests under MPI share: a check that ends the job, and patterns of
 * bytes that tell who wrote them. */
#ifndef LMT_CHECK_H
#define LMT_CHECK_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;

#define CHECK(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "rank %d of %d: %s:%d: not so: %s\n", rank, size, __FILE__, \
				__LINE__, #condition); \
			MPI_Abort(MPI_COMM_WORLD, 1); \
		} \
	} while (0)

static inline unsigned char byte_of(long seed, long at)
{
	unsigned long x = (unsigned long)seed * 0x9e3779b97f4a7c15u + (unsigned long)at;
	return (unsigned char)(x ^ x >> 8 ^ x >> 17);
}

static inline void fill(void *memory, long bytes, long seed)
{
	unsigned char *p = memory;
	for (long i = 0; i < bytes; i++)
		p[i] = byte_of(seed, i);
}

static inline int is_filled(const void *memory, long bytes, long seed)
{
	const unsigned char *p = memory;
	for (long i = 0; i < bytes; i++)
		if (p[i] != byte_of(seed, i))
			return 0;
	return 1;
}

/* Says on rank 0 that all ranks have come so far. */
static inline void passed(const char *what)
{
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0) {
		printf("ok %s\n", what);
		fflush(stdout);
	}
}

static inline void start(int *argc, char ***argv)
{
	MPI_Init(argc, argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
}

#endif
