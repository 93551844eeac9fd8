/* An MPI program as an objective. Its loss is the number of ranks + the number of nodes / 100: 4.02 for 4 ranks, 2 nodes. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
    MPI_Comm node;
    int rank, size, rank_of_node, first, nodes = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &rank_of_node);
    first = rank_of_node == 0;
    MPI_Allreduce(&first, &nodes, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == 0) {
        printf("finch loss=%d.%02d\n", size, nodes);
    }
    MPI_Comm_free(&node);
    return MPI_Finalize();
}
