! The same calls through the module mpi_f08.
program fort08
  use mpi_f08
  implicit none
  integer :: ierr, rank, n, v, w
  type(MPI_Request) :: req
  type(MPI_Status) :: status
  type(MPI_Comm) :: half
  double precision :: x, y
  call MPI_INIT(ierr)
  call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierr)
  call MPI_COMM_SIZE(MPI_COMM_WORLD, n, ierr)
  x = rank
  call MPI_ALLREDUCE(x, y, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
  call MPI_COMM_SPLIT(MPI_COMM_WORLD, mod(rank,2), 0, half, ierr)
  call MPI_BARRIER(half, ierr)
  call MPI_ALLREDUCE(MPI_IN_PLACE, x, 1, MPI_DOUBLE_PRECISION, MPI_MAX, half, ierr)
  v = rank
  call MPI_IRECV(w, 1, MPI_INTEGER, mod(rank+n-1,n), 3, MPI_COMM_WORLD, req, ierr)
  call MPI_SEND(v, 1, MPI_INTEGER, mod(rank+1,n), 3, MPI_COMM_WORLD, ierr)
  call MPI_WAIT(req, status, ierr)
  call MPI_SENDRECV(v, 1, MPI_INTEGER, mod(rank+1,n), 4, w, 1, MPI_INTEGER, MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, status, ierr)
  call MPI_COMM_FREE(half, ierr)
  if (rank == 0) print *, 'sum', y, 'max', x
  call MPI_FINALIZE(ierr)
end program
