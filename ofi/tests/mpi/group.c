/* Communicators, collectives, threads. */
#include "check.h"
#include <pthread.h>

static void collectives(MPI_Comm comm)
{
	int me, many;
	MPI_Comm_rank(comm, &me);
	MPI_Comm_size(comm, &many);
	static const int COUNTS[] = {1, 10, 1000, 100000};
	for (int c = 0; c < 4; c++) {
		int count = COUNTS[c];
		int *out = malloc(count * many * sizeof(int)), *in = malloc(count * many * sizeof(int));
		for (int root = 0; root < many; root++) {
			for (int i = 0; i < count; i++)
				out[i] = me == root ? root * 7 + i : -1;
			MPI_Bcast(out, count, MPI_INT, root, comm);
			for (int i = 0; i < count; i++)
				CHECK(out[i] == root * 7 + i);
			for (int i = 0; i < count; i++)
				out[i] = me + i;
			MPI_Reduce(out, in, count, MPI_INT, MPI_SUM, root, comm);
			for (int i = 0; me == root && i < count; i++)
				CHECK(in[i] == many * (many - 1) / 2 + many * i);
		}
		MPI_Allreduce(out, in, count, MPI_INT, MPI_MAX, comm);
		for (int i = 0; i < count; i++)
			CHECK(in[i] == many - 1 + i);
		for (int to = 0; to < many; to++)
			for (int i = 0; i < count; i++)
				out[to * count + i] = me * 1000 + to * 10 + i;
		MPI_Alltoall(out, count, MPI_INT, in, count, MPI_INT, comm);
		for (int from = 0; from < many; from++)
			for (int i = 0; i < count; i++)
				CHECK(in[from * count + i] == from * 1000 + me * 10 + i);
		MPI_Allgather(out, count, MPI_INT, in, count, MPI_INT, comm);
		for (int from = 0; from < many; from++)
			CHECK(in[from * count] == from * 1000);
		MPI_Request request;
		MPI_Iallreduce(out, in, count, MPI_INT, MPI_SUM, comm, &request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		MPI_Barrier(comm);
		free(out);
		free(in);
	}
}

static void communicators(void)
{
	MPI_Comm copy, half;
	MPI_Comm_dup(MPI_COMM_WORLD, &copy);
	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
	collectives(copy);
	collectives(half);
	/* The same tag in two communicators: no message strays. */
	int a = rank, b = -rank, from_copy, from_world;
	int to = (rank + 1) % size, from = (rank + size - 1) % size;
	MPI_Request requests[4];
	MPI_Irecv(&from_copy, 1, MPI_INT, from, 1, copy, &requests[0]);
	MPI_Irecv(&from_world, 1, MPI_INT, from, 1, MPI_COMM_WORLD, &requests[1]);
	MPI_Isend(&a, 1, MPI_INT, to, 1, MPI_COMM_WORLD, &requests[2]);
	MPI_Isend(&b, 1, MPI_INT, to, 1, copy, &requests[3]);
	MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
	CHECK(from_world == from && from_copy == -from);
	MPI_Comm_free(&copy);
	MPI_Comm_free(&half);
	passed("communicators");
}

enum { THREADS = 4, ROUNDS = 300 };

static void *talk(void *argument)
{
	int number = (int)(long)argument;
	static const int LENGTHS[] = {8, 2000, 50000};
	int to = (rank + 1) % size, from = (rank + size - 1) % size;
	char *out = malloc(50000), *in = malloc(50000);
	for (int i = 0; i < ROUNDS; i++) {
		int bytes = LENGTHS[i % 3];
		fill(out, bytes, rank * 1000 + number * 10 + i);
		MPI_Sendrecv(out, bytes, MPI_BYTE, to, number, in, bytes, MPI_BYTE, from, number, MPI_COMM_WORLD,
			     MPI_STATUS_IGNORE);
		CHECK(is_filled(in, bytes, from * 1000 + number * 10 + i));
	}
	free(out);
	free(in);
	return NULL;
}

static void threads(void)
{
	pthread_t list[THREADS];
	for (long i = 0; i < THREADS; i++)
		pthread_create(&list[i], NULL, talk, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(list[i], NULL);
	passed("threads");
}

int main(int argc, char **argv)
{
	int provided;
	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	collectives(MPI_COMM_WORLD);
	passed("collectives");
	communicators();
	int skips = getenv("SKIP_THREADS") != NULL;
	if (provided == MPI_THREAD_MULTIPLE && !skips)
		threads();
	else if (rank == 0)
		printf("SKIPPED threads: this MPI gives level %d%s\n", provided, skips ? ", and SKIP_THREADS is set" : "");
	MPI_Finalize();
	return 0;
}
