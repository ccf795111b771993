/* Times messages to and fro between two ranks, and checks their bytes.
 * usage: pingpong [LONGEST_BYTES] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void exchange(char *buffer, int bytes, int rank)
{
	if (rank == 0) {
		MPI_Send(buffer, bytes, MPI_BYTE, 1, 7, MPI_COMM_WORLD);
		MPI_Recv(buffer, bytes, MPI_BYTE, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	} else if (rank == 1) {
		MPI_Recv(buffer, bytes, MPI_BYTE, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Send(buffer, bytes, MPI_BYTE, 0, 7, MPI_COMM_WORLD);
	}
}

int main(int argc, char **argv)
{
	long longest = argc > 1 ? atol(argv[1]) : 16 << 20;
	int rank;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	char *buffer = malloc(longest ? longest : 1);
	for (long bytes = 0; bytes <= longest; bytes = bytes ? bytes * 2 : 1) {
		int rounds = bytes < 4096 ? 20000 : bytes < 1 << 18 ? 2000 : bytes < 1 << 22 ? 200 : 40;
		memset(buffer, rank ? 0 : (int)(bytes % 251), bytes);
		for (int i = 0; i < rounds / 10 + 1; i++)
			exchange(buffer, bytes, rank);
		MPI_Barrier(MPI_COMM_WORLD);
		double start = MPI_Wtime();
		for (int i = 0; i < rounds; i++)
			exchange(buffer, bytes, rank);
		double usec = (MPI_Wtime() - start) * 1e6 / rounds / 2;
		for (long i = 0; i < bytes; i++)
			if (rank < 2 && buffer[i] != (char)(bytes % 251)) {
				fprintf(stderr, "rank %d: byte %ld of %ld is wrong\n", rank, i, bytes);
				MPI_Abort(MPI_COMM_WORLD, 1);
			}
		if (rank == 0)
			printf("%10ld B %10.2f us %10.1f MB/s\n", bytes, usec, bytes / usec);
	}
	free(buffer);
	MPI_Finalize();
	return 0;
}
