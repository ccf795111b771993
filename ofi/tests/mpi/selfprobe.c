/* Whether a receive from anybody takes the message that a probe from anybody
 * has just found, where one is from the rank itself. That is no check of ours:
 * it shows what the MPI does by itself (python.rs). */
#include "check.h"

int main(int argc, char **argv)
{
	start(&argc, &argv);
	int next = (rank + 1) % size, others = 0, all;
	for (int i = 0; i < 300; i++) {
		int out[4] = {rank}, in[4];
		MPI_Request sends[2];
		MPI_Status found, received;
		MPI_Isend(out, 1, MPI_INT, rank, 5, MPI_COMM_WORLD, &sends[0]);
		MPI_Isend(out, 2, MPI_INT, next, 5, MPI_COMM_WORLD, &sends[1]);
		for (int k = 0; k < 2; k++) {
			MPI_Probe(MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &found);
			MPI_Recv(in, 4, MPI_INT, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &received);
			others += found.MPI_SOURCE != received.MPI_SOURCE;
		}
		MPI_Waitall(2, sends, MPI_STATUSES_IGNORE);
		MPI_Barrier(MPI_COMM_WORLD);
	}
	MPI_Allreduce(&others, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%d others\n", all);
	MPI_Finalize();
	return 0;
}
