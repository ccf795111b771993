/* One message of as many MiB as the argument says, by a derived datatype; every
 * byte is checked. The statistics show whether it went in one piece. */
#include "check.h"

int main(int argc, char **argv)
{
	start(&argc, &argv);
	long unit = 1 << 20, blocks = argc > 1 ? atol(argv[1]) : 64, words = blocks * unit / 8;
	unsigned long *memory = malloc(blocks * unit);
	MPI_Datatype block;
	MPI_Status status;
	int count;
	CHECK(memory != NULL);
	MPI_Type_contiguous(unit, MPI_BYTE, &block);
	MPI_Type_commit(&block);
	if (rank == 0) {
		for (long i = 0; i < words; i++)
			memory[i] = (unsigned long)i * 0x9e3779b97f4a7c15u;
		MPI_Send(memory, blocks, block, 1, 1, MPI_COMM_WORLD);
	} else if (rank == 1) {
		MPI_Recv(memory, blocks, block, 0, 1, MPI_COMM_WORLD, &status);
		MPI_Get_count(&status, block, &count);
		CHECK(count == blocks);
		for (long i = 0; i < words; i++)
			CHECK(memory[i] == (unsigned long)i * 0x9e3779b97f4a7c15u);
	}
	passed("a huge message");
	/* One byte back, so that every rank receives something. */
	char byte = 1;
	if (rank == 1)
		MPI_Send(&byte, 1, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
	else if (rank == 0)
		MPI_Recv(&byte, 1, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Type_free(&block);
	free(memory);
	MPI_Finalize();
	return 0;
}
