/* Two hosts: every rank sends the same to each other one, and all of it is looked
 * at. Says how many bytes one sends to another. */
#include "check.h"
#include <unistd.h>

static const long SIZES[] = {0, 8, 4096, 65536, 1 << 20, 8 << 20};
enum { COUNT = sizeof SIZES / sizeof *SIZES, MAX_RANKS = 16 };

/* Half of the ranks are on either host. */
static void names(void)
{
	char own[64] = "", all[MAX_RANKS][64];
	int same = 0;
	CHECK(size <= MAX_RANKS);
	CHECK(gethostname(own, sizeof own - 1) == 0);
	MPI_Allgather(own, sizeof own, MPI_CHAR, all, sizeof own, MPI_CHAR, MPI_COMM_WORLD);
	for (int i = 0; i < size; i++)
		same += strcmp(all[i], own) == 0;
	CHECK(2 * same == size);
	passed("two hosts");
}

static void everybody_to_everybody(long bytes)
{
	MPI_Request requests[2 * MAX_RANKS];
	char *out = malloc(bytes + 1), *in = malloc(size * bytes + 1);
	int count = 0;
	fill(out, bytes, rank + 1);
	for (int i = 0; i < size; i++) {
		if (i == rank)
			continue;
		MPI_Irecv(in + i * bytes, bytes, MPI_BYTE, i, 1, MPI_COMM_WORLD, &requests[count++]);
		MPI_Isend(out, bytes, MPI_BYTE, i, 1, MPI_COMM_WORLD, &requests[count++]);
	}
	MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
	for (int i = 0; i < size; i++)
		CHECK(i == rank || is_filled(in + i * bytes, bytes, i + 1));
	free(out);
	free(in);
}

int main(int argc, char **argv)
{
	long bytes = 0;
	start(&argc, &argv);
	names();
	for (int i = 0; i < COUNT; i++) {
		everybody_to_everybody(SIZES[i]);
		bytes += SIZES[i];
	}
	passed("everybody to everybody");
	if (rank == 0)
		printf("bytes %ld\n", bytes);
	MPI_Finalize();
	return 0;
}
