/* Point to point: send modes, any source, probe and matched probe, cancel,
 * truncation, derived datatypes, messages of many sizes. */
#include "check.h"

static const long SIZES[] = {0, 1, 8, 40, 41, 3071, 3072, 3073, 4096, 4097, 16384, 65536, 100001, 1 << 20, 5000003};
enum { COUNT = sizeof SIZES / sizeof *SIZES };

static int right(void) { return (rank + 1) % size; }
static int left(void) { return (rank + size - 1) % size; }

static void modes(void)
{
	int room = 8 << 20;
	void *attached = malloc(room);
	MPI_Buffer_attach(attached, room);
	for (int mode = 0; mode < 4; mode++) {
		for (int i = 0; i < COUNT; i++) {
			long bytes = SIZES[i];
			char *out = malloc(bytes + 1), *in = malloc(bytes + 1);
			MPI_Request receive, send = MPI_REQUEST_NULL;
			MPI_Status status;
			int count;
			fill(out, bytes, rank * 100 + i);
			MPI_Irecv(in, bytes, MPI_BYTE, left(), i, MPI_COMM_WORLD, &receive);
			MPI_Barrier(MPI_COMM_WORLD);
			if (mode == 0)
				MPI_Isend(out, bytes, MPI_BYTE, right(), i, MPI_COMM_WORLD, &send);
			else if (mode == 1)
				MPI_Issend(out, bytes, MPI_BYTE, right(), i, MPI_COMM_WORLD, &send);
			else if (mode == 2)
				MPI_Irsend(out, bytes, MPI_BYTE, right(), i, MPI_COMM_WORLD, &send);
			else
				MPI_Ibsend(out, bytes, MPI_BYTE, right(), i, MPI_COMM_WORLD, &send);
			MPI_Wait(&receive, &status);
			MPI_Wait(&send, MPI_STATUS_IGNORE);
			MPI_Get_count(&status, MPI_BYTE, &count);
			CHECK(status.MPI_SOURCE == left() && status.MPI_TAG == i && count == bytes);
			CHECK(is_filled(in, bytes, left() * 100 + i));
			free(out);
			free(in);
		}
	}
	MPI_Buffer_detach(&attached, &room);
	free(attached);
	passed("send modes");
}

static void any_source(void)
{
	enum { ROUNDS = 50 };
	if (rank == 0) {
		int seen[64] = {0};
		for (int i = 0; i < ROUNDS * (size - 1); i++) {
			int got[2];
			MPI_Status status;
			MPI_Recv(got, 2, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
			CHECK(got[0] == status.MPI_SOURCE && got[1] == seen[got[0]]);
			CHECK(status.MPI_TAG == got[1] % 7);
			seen[got[0]]++;
		}
	} else {
		for (int i = 0; i < ROUNDS; i++) {
			int out[2] = {rank, i};
			MPI_Send(out, 2, MPI_INT, 0, i % 7, MPI_COMM_WORLD);
		}
	}
	passed("any source");
}

static void probes(void)
{
	for (int i = 0; i < COUNT; i++) {
		long bytes = SIZES[i];
		char *out = malloc(bytes + 1), *in = malloc(bytes + 1);
		MPI_Request send;
		MPI_Status status;
		MPI_Message message;
		int count;
		fill(out, bytes, rank + i);
		MPI_Isend(out, bytes, MPI_BYTE, right(), 5, MPI_COMM_WORLD, &send);
		MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
		MPI_Get_count(&status, MPI_BYTE, &count);
		CHECK(count == bytes && status.MPI_SOURCE == left() && status.MPI_TAG == 5);
		MPI_Recv(in, bytes, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD, &status);
		CHECK(is_filled(in, bytes, left() + i));
		MPI_Wait(&send, MPI_STATUS_IGNORE);

		MPI_Isend(out, bytes, MPI_BYTE, right(), 6, MPI_COMM_WORLD, &send);
		MPI_Mprobe(left(), 6, MPI_COMM_WORLD, &message, &status);
		MPI_Get_count(&status, MPI_BYTE, &count);
		CHECK(count == bytes && status.MPI_SOURCE == left());
		memset(in, 0, bytes);
		MPI_Mrecv(in, bytes, MPI_BYTE, &message, &status);
		CHECK(is_filled(in, bytes, left() + i));
		MPI_Wait(&send, MPI_STATUS_IGNORE);
		free(out);
		free(in);
	}
	int flag;
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Iprobe(MPI_ANY_SOURCE, 77, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
	CHECK(!flag);
	passed("probe and matched probe");
}

static void cancels(void)
{
	int number = 0, cancelled;
	MPI_Request receive;
	MPI_Status status;
	MPI_Irecv(&number, 1, MPI_INT, left(), 99, MPI_COMM_WORLD, &receive);
	MPI_Cancel(&receive);
	MPI_Wait(&receive, &status);
	MPI_Test_cancelled(&status, &cancelled);
	CHECK(cancelled);
	/* What was taken back takes no message away. */
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Sendrecv(&rank, 1, MPI_INT, right(), 99, &number, 1, MPI_INT, left(), 99, MPI_COMM_WORLD, &status);
	CHECK(number == left());
	passed("cancel");
}

static void truncation(void)
{
	static char out[100000], in[100000];
	static const int LENGTHS[] = {100, 5000, 100000};
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	for (int i = 0; i < 3; i++) {
		MPI_Request send;
		MPI_Status status;
		int class = 0;
		MPI_Isend(out, LENGTHS[i], MPI_BYTE, right(), 8, MPI_COMM_WORLD, &send);
		int error = MPI_Recv(in, 10, MPI_BYTE, left(), 8, MPI_COMM_WORLD, &status);
		MPI_Error_class(error, &class);
		CHECK(error != MPI_SUCCESS && class == MPI_ERR_TRUNCATE);
		MPI_Wait(&send, MPI_STATUS_IGNORE);
	}
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	passed("truncation");
}

static void datatypes(void)
{
	enum { ROWS = 700, COLUMNS = 300 };
	static double matrix[ROWS][COLUMNS], column[ROWS];
	MPI_Datatype one_column, pair;
	MPI_Type_vector(ROWS, 1, COLUMNS, MPI_DOUBLE, &one_column);
	MPI_Type_commit(&one_column);
	for (int i = 0; i < ROWS; i++)
		for (int j = 0; j < COLUMNS; j++)
			matrix[i][j] = rank * 1e6 + i * 1e3 + j;
	MPI_Sendrecv(&matrix[0][7], 1, one_column, right(), 3, column, ROWS, MPI_DOUBLE, left(), 3, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE);
	for (int i = 0; i < ROWS; i++)
		CHECK(column[i] == left() * 1e6 + i * 1e3 + 7);
	MPI_Sendrecv(column, ROWS, MPI_DOUBLE, right(), 4, &matrix[0][9], 1, one_column, left(), 4, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE);
	int far = (rank + 2 * size - 2) % size;
	for (int i = 0; i < ROWS; i++)
		CHECK(matrix[i][9] == far * 1e6 + i * 1e3 + 7 && matrix[i][8] == rank * 1e6 + i * 1e3 + 8);
	MPI_Type_contiguous(2, MPI_INT, &pair);
	MPI_Type_commit(&pair);
	int out[8] = {rank, 1, 2, 3, 4, 5, 6, 7}, in[8] = {0};
	MPI_Sendrecv(out, 4, pair, right(), 5, in, 4, pair, left(), 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	CHECK(in[0] == left() && in[7] == 7);
	MPI_Type_free(&pair);
	MPI_Type_free(&one_column);
	passed("datatypes");
}

static void floods(void)
{
	enum { MANY = 3000 };
	static int in[MANY], out[MANY];
	static MPI_Request requests[2 * MANY];
	/* Receives in the opposite order, messages long before them. */
	for (int i = 0; i < MANY; i++) {
		out[i] = rank * MANY + i;
		MPI_Isend(&out[i], 1, MPI_INT, right(), i, MPI_COMM_WORLD, &requests[i]);
	}
	for (int i = 0; i < MANY; i++)
		MPI_Irecv(&in[MANY - 1 - i], 1, MPI_INT, left(), MANY - 1 - i, MPI_COMM_WORLD, &requests[MANY + i]);
	MPI_Waitall(2 * MANY, requests, MPI_STATUSES_IGNORE);
	for (int i = 0; i < MANY; i++)
		CHECK(in[i] == left() * MANY + i);
	passed("floods");
}

static void huge(long bytes)
{
	char *memory = malloc(bytes);
	if (rank < 2) {
		MPI_Datatype block;
		long unit = 1 << 20, blocks = bytes / unit;
		MPI_Type_contiguous(unit, MPI_BYTE, &block);
		MPI_Type_commit(&block);
		for (long i = 0; i < bytes; i += 4096)
			memory[i] = rank ? 0 : byte_of(1, i);
		memory[bytes - 1] = rank ? 0 : 42;
		if (rank == 0)
			MPI_Send(memory, blocks, block, 1, 1, MPI_COMM_WORLD);
		else
			MPI_Recv(memory, blocks, block, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		for (long i = 0; i < bytes; i += 4096)
			CHECK((unsigned char)memory[i] == byte_of(1, i));
		CHECK(memory[bytes - 1] == 42);
		MPI_Type_free(&block);
	}
	free(memory);
	passed("a huge message");
}

int main(int argc, char **argv)
{
	start(&argc, &argv);
	modes();
	any_source();
	probes();
	if (getenv("SKIP_CANCEL") == NULL)
		cancels();
	if (getenv("SKIP_TRUNCATION") == NULL)
		truncation();
	datatypes();
	floods();
	huge(argc > 1 ? atol(argv[1]) << 20 : 64 << 20);
	MPI_Finalize();
	return 0;
}
