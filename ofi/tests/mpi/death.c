/* The last rank is killed while the others receive from it or send to it. Each
 * writes the time, in milliseconds, to the file of its rank in the folder that
 * the argument names: the killed one just before, the others when they are told
 * of an error. MPICH and Intel MPI end a rank that is told, whatever its error
 * handler; who is told of none is ended by the launcher. */
#include "check.h"
#include <signal.h>
#include <time.h>
#include <unistd.h>

static void note(const char *folder)
{
	char name[4096];
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	snprintf(name, sizeof name, "%s/%d", folder, rank);
	FILE *file = fopen(name, "w");
	CHECK(file != NULL);
	fprintf(file, "%lld\n", now.tv_sec * 1000ll + now.tv_nsec / 1000000);
	fclose(file);
}

int main(int argc, char **argv)
{
	start(&argc, &argv);
	CHECK(argc > 1);
	enum { BYTES = 32 << 20 };
	int victim = size - 1, error;
	char *memory = calloc(BYTES, 1);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	/* All are connected. */
	for (int i = 0; i < 20; i++)
		MPI_Alltoall(memory, 100, MPI_BYTE, memory + (1 << 20), 100, MPI_BYTE, MPI_COMM_WORLD);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == victim) {
		usleep(300000);
		note(argv[1]);
		raise(SIGKILL);
	}
	if (rank % 2 == 0)
		error = MPI_Send(memory, BYTES, MPI_BYTE, victim, 1, MPI_COMM_WORLD);
	else
		error = MPI_Recv(memory, BYTES, MPI_BYTE, victim, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (error != MPI_SUCCESS)
		note(argv[1]);
	/* The launcher ends those that wait; who was told ends by itself. */
	_exit(error != MPI_SUCCESS ? 3 : 4);
}
