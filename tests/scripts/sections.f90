! Sections of arrays that are not contiguous are buffers of `use mpi_f08`: in every kind of call the right elements are
! sent, and nothing is written between them. What cannot be done is an error, and has a sentence.
module parts
 use mpi_f08
 implicit none
 integer, parameter :: blocking = 1, nonblocking = 2, persistent = 3
 integer :: me, ranks, wrong = 0
 type(MPI_Comm) :: world
 type :: particle
  sequence
  double precision :: x
  integer :: number, unused
 end type
contains
 subroutine check(what, right)
  character(*), intent(in) :: what
  logical, intent(in) :: right
  if (right) return
  wrong = wrong + 1
  print '(3a,i0)', 'sections: ', what, ' is wrong in rank ', me
 end subroutine

 ! What rank r has at place i.
 elemental integer function v(r, i)
  integer, intent(in) :: r, i
  v = 1000*r + i
 end function

 ! Is the section `part` of `whole`, where all was -1, as expected, and nothing else was written?
 subroutine same(what, whole, part, expected)
  character(*), intent(in) :: what
  integer, intent(in) :: whole(:), part(:), expected(:)
  call check(what, size(part) == size(expected))
  if (size(part) /= size(expected)) return
  call check(what, all(part == expected) .and. count(whole /= -1) == count(expected /= -1))
 end subroutine

 subroutine finish(q, way)
  type(MPI_Request), intent(inout) :: q
  integer, intent(in) :: way
  if (way == blocking) return
  if (way == persistent) call MPI_Start(q)
  call MPI_Wait(q, MPI_STATUS_IGNORE)
  if (way == persistent) call MPI_Request_free(q)
 end subroutine

 ! The error is of this class, and its sentence speaks of mpi_f08.
 subroutine refused(what, err)
  character(*), intent(in) :: what
  integer, intent(in) :: err
  character(MPI_MAX_ERROR_STRING) :: words
  integer :: class, length
  if (err == MPI_SUCCESS) then
   call check(what // ', which returns no error,', .false.)
   return
  end if
  call MPI_Error_class(err, class)
  call MPI_Error_string(err, words, length)
  call check('the error of ' // what // ' ("' // words(1:length) // '")', &
   class == MPI_ERR_BUFFER .and. index(words(1:length), 'mpi_f08(') > 0 .and. &
   index(words(1:length), 'section') > 0)
 end subroutine

 ! ---- collectives with blocks ----
 subroutine blocks(way, k)
  integer, intent(in) :: way, k
  integer, asynchronous :: a(2*k*ranks), b(3*k*ranks), c(k*ranks)
  integer :: n, i, j, root
  type(MPI_Request) :: q
  n = k*ranks
  root = ranks - 1
  a = [(v(me, i), i=1,2*n)]

  b = -1
  select case (way)
  case (blocking)
   call MPI_Allgather(a(1::2), k, MPI_INTEGER, b(2::3), k, MPI_INTEGER, world)
  case (nonblocking)
   call MPI_Iallgather(a(1::2), k, MPI_INTEGER, b(2::3), k, MPI_INTEGER, world, q)
  case (persistent)
   call MPI_Allgather_init(a(1::2), k, MPI_INTEGER, b(2::3), k, MPI_INTEGER, world, MPI_INFO_NULL, q)
  end select
  call finish(q, way)
  call same('allgather', b, b(2::3), [((v(j, 2*i-1), i=1,k), j=0,ranks-1)])

  b = -1
  select case (way)
  case (blocking)
   call MPI_Gather(a(2::2), k, MPI_INTEGER, b(1::3), k, MPI_INTEGER, root, world)
  case (nonblocking)
   call MPI_Igather(a(2::2), k, MPI_INTEGER, b(1::3), k, MPI_INTEGER, root, world, q)
  case (persistent)
   call MPI_Gather_init(a(2::2), k, MPI_INTEGER, b(1::3), k, MPI_INTEGER, root, world, MPI_INFO_NULL, q)
  end select
  call finish(q, way)
  if (me == root) call same('gather', b, b(1::3), [((v(j, 2*i), i=1,k), j=0,ranks-1)])
  if (me /= root) call check('gather outside the root', all(b == -1))

  b = -1
  select case (way)
  case (blocking)
   call MPI_Scatter(a(2::2), k, MPI_INTEGER, b(1:3*k:3), k, MPI_INTEGER, root, world)
  case (nonblocking)
   call MPI_Iscatter(a(2::2), k, MPI_INTEGER, b(1:3*k:3), k, MPI_INTEGER, root, world, q)
  case (persistent)
   call MPI_Scatter_init(a(2::2), k, MPI_INTEGER, b(1:3*k:3), k, MPI_INTEGER, root, world, MPI_INFO_NULL, q)
  end select
  call finish(q, way)
  call same('scatter', b, b(1:3*k:3), [(v(root, 2*(me*k+i)), i=1,k)])

  b = -1
  select case (way)
  case (blocking)
   call MPI_Alltoall(a(1::2), k, MPI_INTEGER, b(3::3), k, MPI_INTEGER, world)
  case (nonblocking)
   call MPI_Ialltoall(a(1::2), k, MPI_INTEGER, b(3::3), k, MPI_INTEGER, world, q)
  case (persistent)
   call MPI_Alltoall_init(a(1::2), k, MPI_INTEGER, b(3::3), k, MPI_INTEGER, world, MPI_INFO_NULL, q)
  end select
  call finish(q, way)
  call same('alltoall', b, b(3::3), [((v(j, 2*(me*k+i)-1), i=1,k), j=0,ranks-1)])

  c = -1
  call MPI_Alltoall(a(1::2), k, MPI_INTEGER, c, k, MPI_INTEGER, world)
  call same('alltoall of a section to an array', c, c, [((v(j, 2*(me*k+i)-1), i=1,k), j=0,ranks-1)])
  b = -1
  call MPI_Alltoall(a, k, MPI_INTEGER, b(3::3), k, MPI_INTEGER, world)
  call same('alltoall of an array to a section', b, b(3::3), [((v(j, me*k+i), i=1,k), j=0,ranks-1)])

  ! from the end to the beginning
  b = -1
  call MPI_Allgather(a(2*n:1:-2), k, MPI_INTEGER, b(3*n:1:-3), k, MPI_INTEGER, world)
  call same('allgather with negative strides', b, b(3*n:1:-3), [((v(j, 2*n+2-2*i), i=1,k), j=0,ranks-1)])
  b = -1
  call MPI_Alltoall(a(2*n:1:-1), k, MPI_INTEGER, b(n:1:-1), k, MPI_INTEGER, world)
  call same('alltoall with negative strides', b, b(n:1:-1), [((v(j, 2*n+1-(me*k+i)), i=1,k), j=0,ranks-1)])

  ! counts of the long kind
  b = -1
  call MPI_Allgather(a(1::2), int(k, MPI_COUNT_KIND), MPI_INTEGER, b(2::3), int(k, MPI_COUNT_KIND), MPI_INTEGER, world)
  call same('allgather with MPI_Count', b, b(2::3), [((v(j, 2*i-1), i=1,k), j=0,ranks-1)])

  ! in place
  b = -1
  b(2+3*k*me:1+3*k*(me+1):3) = a(1:k)
  select case (way)
  case (blocking)
   call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b(2::3), k, MPI_INTEGER, world)
  case (nonblocking)
   call MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b(2::3), k, MPI_INTEGER, world, q)
  case (persistent)
   call MPI_Allgather_init(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b(2::3), k, MPI_INTEGER, world, MPI_INFO_NULL, q)
  end select
  call finish(q, way)
  call same('allgather in place', b, b(2::3), [((v(j, i), i=1,k), j=0,ranks-1)])
  b = -1
  b(1::3) = a(1:n)
  call MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b(1::3), k, MPI_INTEGER, world)
  call same('alltoall in place', b, b(1::3), [((v(j, me*k+i), i=1,k), j=0,ranks-1)])
  b = -1
  if (me == root) then
   b(2+3*k*me:1+3*k*(me+1):3) = a(1:k)
   call MPI_Gather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b(2::3), k, MPI_INTEGER, root, world)
   call same('gather in place', b, b(2::3), [((v(j, i), i=1,k), j=0,ranks-1)])
   call MPI_Scatter(a(1::2), k, MPI_INTEGER, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, root, world)
  else
   ! What only the root needs may be anything.
   call MPI_Gather(a, k, MPI_INTEGER, b(1:2:2), -1, MPI_DATATYPE_NULL, root, world)
   call MPI_Scatter(b(1::2), -1, MPI_DATATYPE_NULL, c, k, MPI_INTEGER, root, world)
   call same('scatter in place', c(1:k), c(1:k), [(v(root, 2*(me*k+i)-1), i=1,k)])
  end if
 end subroutine

 ! ---- blocks in sections of two and three dimensions ----
 subroutine planes(way)
  integer, intent(in) :: way
  integer, asynchronous :: w(6, 2*ranks), t(2*ranks, 3), a(12*ranks), r(5, 2*ranks), h(4, 3, 2*ranks)
  integer :: i, j, err
  type(MPI_Request) :: q
  a = [(v(me, i), i=1,12*ranks)]

  r = -1 ! with a border around it: one block is two columns, with three of each
  select case (way)
  case (blocking)
   call MPI_Allgather(a, 6, MPI_INTEGER, r(2:4,:), 6, MPI_INTEGER, world)
  case (nonblocking)
   call MPI_Iallgather(a, 6, MPI_INTEGER, r(2:4,:), 6, MPI_INTEGER, world, q)
  case (persistent)
   call MPI_Allgather_init(a, 6, MPI_INTEGER, r(2:4,:), 6, MPI_INTEGER, world, MPI_INFO_NULL, q)
  end select
  call finish(q, way)
  call same('allgather of two columns', flat(r), flat(r(2:4,:)), [((v(j, i), i=1,6), j=0,ranks-1)])

  w = -1 ! whole columns, every other one
  select case (way)
  case (blocking)
   call MPI_Allgather(a, 6, MPI_INTEGER, w(:,2::2), 6, MPI_INTEGER, world)
  case (nonblocking)
   call MPI_Iallgather(a, 6, MPI_INTEGER, w(:,2::2), 6, MPI_INTEGER, world, q)
  case (persistent)
   call MPI_Allgather_init(a, 6, MPI_INTEGER, w(:,2::2), 6, MPI_INTEGER, world, MPI_INFO_NULL, q)
  end select
  call finish(q, way)
  call same('allgather of whole columns', flat(w), flat(w(:,2::2)), [((v(j, i), i=1,6), j=0,ranks-1)])

  w = -1 ! rows, of one dimension and of two
  call MPI_Allgather(a, 2, MPI_INTEGER, w(3,:), 2, MPI_INTEGER, world)
  call same('allgather into a row', flat(w), w(3,:), [((v(j, i), i=1,2), j=0,ranks-1)])
  w = -1
  call MPI_Allgather(a, 2, MPI_INTEGER, w(3:3,:), 2, MPI_INTEGER, world)
  call same('allgather into a section of one row', flat(w), w(3,:), [((v(j, i), i=1,2), j=0,ranks-1)])

  t = -1 ! all blocks in the first column
  call MPI_Allgather(a, 1, MPI_INTEGER, t(1::2,1:3:2), 1, MPI_INTEGER, world)
  call same('allgather into a part of a column', flat(t), t(1::2,1), [(v(j, 1), j=0,ranks-1)])

  r = -1
  call MPI_Gather(a(1:6), 6, MPI_INTEGER, r(2:4,:), 6, MPI_INTEGER, 0, world)
  if (me == 0) call same('gather into an inner part', flat(r), flat(r(2:4,:)), [((v(j, i), i=1,6), j=0,ranks-1)])
  w = reshape([(v(me, i), i=1,12*ranks)], shape(w))
  r = -1
  call MPI_Alltoall(w(2:4,:), 6, MPI_INTEGER, r(2:4,:), 6, MPI_INTEGER, world)
  call same('alltoall of inner parts', flat(r), flat(r(2:4,:)), &
   [(((v(j, 12*me+6*err+i), i=2,4), err=0,1), j=0,ranks-1)])

  h = -1 ! one block is two planes
  call MPI_Allgather(a, 8, MPI_INTEGER, h(1::3,1::2,:), 8, MPI_INTEGER, world)
  call same('allgather of planes', pack(h, .true.), pack(h(1::3,1::2,:), .true.), &
   [((v(j, i), i=1,8), j=0,ranks-1)])

  ! 2 of 3 rows are a block: the third block would be the last row of one column and the first of the next one
  r = -1
  err = MPI_SUCCESS
  select case (way)
  case (blocking)
   call MPI_Allgather(a, 2, MPI_INTEGER, r(2:4,:), 2, MPI_INTEGER, world, err)
  case (nonblocking)
   call MPI_Iallgather(a, 2, MPI_INTEGER, r(2:4,:), 2, MPI_INTEGER, world, q, err)
  case (persistent)
   call MPI_Allgather_init(a, 2, MPI_INTEGER, r(2:4,:), 2, MPI_INTEGER, world, MPI_INFO_NULL, q, err)
  end select
  if (ranks == 1) then
   call finish(q, way)
   call same('allgather of one block', flat(r), r(2:3,1), [v(0, 1), v(0, 2)])
  else
   call refused('allgather', err)
   call check('allgather that was refused', all(r == -1))
   call MPI_Alltoall(r(2:4,:), 2, MPI_INTEGER, a, 2, MPI_INTEGER, world, err)
   call refused('alltoall', err)
   call MPI_Barrier(world)
  end if
 end subroutine

 function flat(w)
  integer, intent(in) :: w(:,:)
  integer :: flat(size(w))
  flat = pack(w, .true.)
 end function

 ! ---- counts and displacements ----
 subroutine vectors(way)
  integer, intent(in) :: way
  integer :: counts(ranks), displs(ranks), scounts(ranks), sdispls(ranks), n, i, j, err
  integer, asynchronous :: a(4*ranks*(ranks+1)), b(4*ranks*(ranks+1))
  integer, allocatable :: e(:)
  type(MPI_Request) :: q
  n = 2*ranks*(ranks+1)
  a = [(v(me, i), i=1,2*n)]
  ! Rank j has j+1 elements, and they lie from the end to the beginning, with gaps of one.
  counts = [(j, j=1,ranks)]
  displs(ranks) = 1
  do j = ranks-1, 1, -1
   displs(j) = displs(j+1) + counts(j+1) + 1
  end do
  allocate(e(n))

  b = -1
  select case (way)
  case (blocking)
   call MPI_Allgatherv(a(1::2), me+1, MPI_INTEGER, b(2::2), counts, displs, MPI_INTEGER, world)
  case (nonblocking)
   call MPI_Iallgatherv(a(1::2), me+1, MPI_INTEGER, b(2::2), counts, displs, MPI_INTEGER, world, q)
  case (persistent)
   call MPI_Allgatherv_init(a(1::2), me+1, MPI_INTEGER, b(2::2), counts, displs, MPI_INTEGER, world, MPI_INFO_NULL, q)
  end select
  call finish(q, way)
  e = -1
  do j = 1, ranks
   e(displs(j)+1:displs(j)+counts(j)) = [(v(j-1, 2*i-1), i=1,counts(j))]
  end do
  call same('allgatherv', b, b(2::2), e)

  b = -1
  select case (way)
  case (blocking)
   call MPI_Gatherv(a(1::2), me+1, MPI_INTEGER, b(2*n:1:-2), counts, displs, MPI_INTEGER, 0, world)
  case (nonblocking)
   call MPI_Igatherv(a(1::2), me+1, MPI_INTEGER, b(2*n:1:-2), counts, displs, MPI_INTEGER, 0, world, q)
  case (persistent)
   call MPI_Gatherv_init(a(1::2), me+1, MPI_INTEGER, b(2*n:1:-2), counts, displs, MPI_INTEGER, 0, world, &
    MPI_INFO_NULL, q)
  end select
  call finish(q, way)
  if (me == 0) call same('gatherv with a negative stride', b, b(2*n:1:-2), e)

  b = -1
  select case (way)
  case (blocking)
   call MPI_Scatterv(a(1::2), counts, displs, MPI_INTEGER, b(1:2*me+2:2), me+1, MPI_INTEGER, 0, world)
  case (nonblocking)
   call MPI_Iscatterv(a(1::2), counts, displs, MPI_INTEGER, b(1:2*me+2:2), me+1, MPI_INTEGER, 0, world, q)
  case (persistent)
   call MPI_Scatterv_init(a(1::2), counts, displs, MPI_INTEGER, b(1:2*me+2:2), me+1, MPI_INTEGER, 0, world, &
    MPI_INFO_NULL, q)
  end select
  call finish(q, way)
  call same('scatterv', b, b(1:2*me+2:2), [(v(0, 2*(displs(me+1)+i)-1), i=1,me+1)])

  scounts = me + 1
  sdispls = [(j*(me+1), j=0,ranks-1)]
  b = -1
  select case (way)
  case (blocking)
   call MPI_Alltoallv(a(1::2), scounts, sdispls, MPI_INTEGER, b(2::2), counts, displs, MPI_INTEGER, world)
  case (nonblocking)
   call MPI_Ialltoallv(a(1::2), scounts, sdispls, MPI_INTEGER, b(2::2), counts, displs, MPI_INTEGER, world, q)
  case (persistent)
   call MPI_Alltoallv_init(a(1::2), scounts, sdispls, MPI_INTEGER, b(2::2), counts, displs, MPI_INTEGER, world, &
    MPI_INFO_NULL, q)
  end select
  call finish(q, way)
  e = -1
  do j = 1, ranks
   e(displs(j)+1:displs(j)+counts(j)) = [(v(j-1, 2*(me*j+i)-1), i=1,counts(j))]
  end do
  call same('alltoallv', b, b(2::2), e)

  b = -1
  call MPI_Alltoallv(a(1::2), int(scounts, MPI_COUNT_KIND), int(sdispls, MPI_ADDRESS_KIND), MPI_INTEGER, &
   b(2::2), int(counts, MPI_COUNT_KIND), int(displs, MPI_ADDRESS_KIND), MPI_INTEGER, world)
  call same('alltoallv with MPI_Count', b, b(2::2), e)

  block
   integer :: w(6, 2*ranks), nowhere(ranks)
   type(MPI_Datatype) :: types(ranks)
   w = -1
   nowhere = [(6*j, j=0,ranks-1)]
   counts = 1
   call MPI_Allgatherv(a, 1, MPI_INTEGER, w(1:4,:), counts, nowhere, MPI_INTEGER, world, err)
   call refused('allgatherv of two dimensions', err)
   types = MPI_INTEGER
   nowhere = 4*nowhere
   call MPI_Alltoallw(a, counts, nowhere, types, w(1:4,:), counts, nowhere, types, world, err)
   call refused('alltoallw', err)
   call check('what was refused', all(w == -1))
   call MPI_Barrier(world)
  end block
 end subroutine

 ! ---- neighbors ----
 subroutine neighbors()
  type(MPI_Comm) :: ring
  integer :: left, right, i, k, a(24), b(24), e(12)
  type(MPI_Request) :: q
  call MPI_Cart_create(world, 1, [ranks], [.true.], .false., ring)
  call MPI_Cart_shift(ring, 0, 1, left, right)
  a = [(v(me, i), i=1,24)]
  k = 3
  b = -1
  call MPI_Neighbor_allgather(a(1::2), k, MPI_INTEGER, b(1:23:4), k, MPI_INTEGER, ring)
  call same('neighbor_allgather', b, b(1:23:4), [(v(left, 2*i-1), i=1,k), (v(right, 2*i-1), i=1,k)])
  b = -1
  call MPI_Ineighbor_allgather(a(1::2), k, MPI_INTEGER, b(1:23:4), k, MPI_INTEGER, ring, q)
  call finish(q, nonblocking)
  call same('ineighbor_allgather', b, b(1:23:4), [(v(left, 2*i-1), i=1,k), (v(right, 2*i-1), i=1,k)])
  e(1:2*k) = [(v(left, 2*(k+i)-1), i=1,k), (v(right, 2*i-1), i=1,k)]
  if (ranks < 3) return ! One neighbor on both sides: which block is whose is another matter.
  b = -1
  call MPI_Neighbor_alltoall(a(1::2), k, MPI_INTEGER, b(1:23:4), k, MPI_INTEGER, ring)
  call same('neighbor_alltoall', b, b(1:23:4), e(1:2*k))
  b = -1
  call MPI_Neighbor_alltoall_init(a(1::2), k, MPI_INTEGER, b(1:23:4), k, MPI_INTEGER, ring, MPI_INFO_NULL, q)
  call finish(q, persistent)
  call same('neighbor_alltoall_init', b, b(1:23:4), e(1:2*k))
  b = -1
  call MPI_Neighbor_alltoallv(a(1::2), [k,k], [0,k], MPI_INTEGER, b(1:23:4), [k,k], [0,k], MPI_INTEGER, ring)
  call same('neighbor_alltoallv', b, b(1:23:4), e(1:2*k))
  call MPI_Comm_free(ring)
 end subroutine

 ! ---- reductions ----
 subroutine reductions()
  integer, parameter :: n = 20
  integer :: a(2*n), b(3*n), c(n), w(6, 8), x(6, 8), sum2, i, root, err
  type(MPI_Request) :: q
  root = ranks - 1
  sum2 = 1000*(ranks*(ranks-1)/2)
  a = [(v(me, i), i=1,2*n)]
  b = -1
  call MPI_Allreduce(a(1::2), b(3::3), n, MPI_INTEGER, MPI_SUM, world)
  call same('allreduce', b, b(3::3), [(sum2 + ranks*(2*i-1), i=1,n)])
  b = -1
  call MPI_Allreduce(a, b(3::3), n-5, MPI_INTEGER, MPI_SUM, world)
  call same('allreduce of fewer elements', b, b(3:3*n-15:3), [(sum2 + ranks*i, i=1,n-5)])
  call MPI_Allreduce(a(2*n:1:-2), c, int(n, MPI_COUNT_KIND), MPI_INTEGER, MPI_SUM, world)
  call same('allreduce with a negative stride', c, c, [(sum2 + ranks*(2*n+2-2*i), i=1,n)])
  b = -1
  b(1::3) = a(1:n)
  call MPI_Allreduce(MPI_IN_PLACE, b(1::3), n, MPI_INTEGER, MPI_SUM, world)
  call same('allreduce in place', b, b(1::3), [(sum2 + ranks*i, i=1,n)])
  b = -1
  call MPI_Reduce(a(1::2), b(2::3), n, MPI_INTEGER, MPI_SUM, root, world)
  if (me == root) call same('reduce', b, b(2::3), [(sum2 + ranks*(2*i-1), i=1,n)])
  if (me /= root) call check('reduce outside the root', all(b == -1))
  b = -1
  if (me == root) then
   b(2::3) = a(1:n)
   call MPI_Reduce(MPI_IN_PLACE, b(2::3), n, MPI_INTEGER, MPI_SUM, root, world)
   call same('reduce in place', b, b(2::3), [(sum2 + ranks*i, i=1,n)])
  else
   call MPI_Reduce(a, b(1:2:2), n, MPI_INTEGER, MPI_SUM, root, world) ! shorter than n
  end if
  b = -1
  call MPI_Scan(a(1::2), b(2::3), n, MPI_INTEGER, MPI_SUM, world)
  call same('scan', b, b(2::3), [(1000*(me*(me+1)/2) + (me+1)*(2*i-1), i=1,n)])
  b = -1
  call MPI_Exscan(a(1::2), b(2::3), n, MPI_INTEGER, MPI_SUM, world)
  if (me > 0) call same('exscan', b, b(2::3), [(1000*(me*(me-1)/2) + me*(2*i-1), i=1,n)])
  if (me == 0) call check('exscan in rank 0', all(b == -1))
  b = -1
  b(1::3) = 1
  call MPI_Reduce_local(a(1::2), b(1::3), n, MPI_INTEGER, MPI_SUM)
  call same('reduce_local', b, b(1::3), [(v(me, 2*i-1) + 1, i=1,n)])

  ! two dimensions; one whole column is not looked at
  w = reshape([(v(me, i), i=1,48)], shape(w))
  x = -1
  call MPI_Allreduce(w(1:5:2,2::2), x(2:4,1:7:2), 12, MPI_INTEGER, MPI_SUM, world)
  call same('allreduce of two dimensions', flat(x), flat(x(2:4,1:7:2)), &
   flat(sum2 + ranks*reshape([((6*root+i, i=1,5,2), root=1,7,2)], [3,4])))

  call scattered(a)

  ! what would have to last longer than the call
  call MPI_Iallreduce(a(1::2), c, n, MPI_INTEGER, MPI_SUM, world, q, err)
  call refused('iallreduce', err)
  call MPI_Iscan(a, b(1::3), n, MPI_INTEGER, MPI_SUM, world, q, err)
  call refused('iscan', err)
  call MPI_Allreduce_init(MPI_IN_PLACE, b(1::3), n, MPI_INTEGER, MPI_SUM, world, MPI_INFO_NULL, q, err)
  call refused('allreduce_init', err)
  call MPI_Ireduce_scatter_block(a(1::2), c, 1, MPI_INTEGER, MPI_SUM, world, q, err)
  call refused('ireduce_scatter_block', err)
  ! Outside the root nobody looks at it; and one element is contiguous.
  if (me == 0) call MPI_Ireduce(a, c, n, MPI_INTEGER, MPI_SUM, 0, world, q)
  if (me /= 0) call MPI_Ireduce(a, b(1::3), n, MPI_INTEGER, MPI_SUM, 0, world, q)
  call finish(q, nonblocking)
  if (me == 0) call same('ireduce', c, c, [(sum2 + ranks*i, i=1,n)])
  call MPI_Iallreduce(a(1:1:2), c(1:1:3), 1, MPI_INTEGER, MPI_SUM, world, q)
  call finish(q, nonblocking)
  call check('iallreduce of one element', c(1) == sum2 + ranks)
 end subroutine

 subroutine scattered(given)
  integer, intent(in) :: given(:)
  integer :: a(2*ranks*(ranks+1)), b(2*ranks*(ranks+1)), counts(ranks), first, n, i, sum2
  sum2 = 1000*(ranks*(ranks-1)/2)
  counts = [(i, i=1,ranks)]
  n = sum(counts)
  first = sum(counts(1:me))
  a = [(v(me, i), i=1,size(a))]
  b = -1
  call MPI_Reduce_scatter(a(1::2), b(1:2*me+2:2), counts, MPI_INTEGER, MPI_SUM, world)
  call same('reduce_scatter', b, b(1:2*me+2:2), [(sum2 + ranks*(2*(first+i)-1), i=1,me+1)])
  b = -1
  b(1:2*n:2) = a(1:n)
  call MPI_Reduce_scatter(MPI_IN_PLACE, b(1:2*n:2), int(counts, MPI_COUNT_KIND), MPI_INTEGER, MPI_SUM, world)
  call check('reduce_scatter in place', all(b(2::2) == -1) .and. &
   all(b(1:2*me+2:2) == [(sum2 + ranks*(first+i), i=1,me+1)]))
  b = -1
  call MPI_Reduce_scatter_block(a(2::2), b(1:4:2), 2, MPI_INTEGER, MPI_SUM, world)
  call same('reduce_scatter_block', b, b(1:4:2), [(sum2 + ranks*2*(2*me+i), i=1,2)])
  b = -1
  b(1::2) = a(1:size(a)/2)
  call MPI_Reduce_scatter_block(MPI_IN_PLACE, b(1::2), 1, MPI_INTEGER, MPI_SUM, world)
  call check('reduce_scatter_block in place', all(b(2::2) == -1) .and. b(1) == sum2 + ranks*(me+1))
  call check('what was given', all(given == [(v(me, i), i=1,size(given))]))
 end subroutine

 ! ---- two groups: the even ranks' first one is the root ----
 subroutine groups()
  type(MPI_Comm) :: half, both
  integer :: other, root, a(20), b(20*ranks), i, j
  if (ranks < 2) return
  call MPI_Comm_split(world, mod(me, 2), me, half)
  call MPI_Intercomm_create(half, 0, world, 1 - mod(me, 2), 7, both)
  call MPI_Comm_remote_size(both, other)
  root = 0
  if (mod(me, 2) == 0) root = MPI_PROC_NULL
  if (me == 0) root = MPI_ROOT
  a = [(v(me, i), i=1,20)]
  b = -1
  call MPI_Gather(a(1::2), 10, MPI_INTEGER, b(2::2), 10, MPI_INTEGER, root, both)
  if (me == 0) call same('gather of a group', b, b(2:20*other:2), [((v(j, 2*i-1), i=1,10), j=1,2*other,2)])
  b = -1
  call MPI_Reduce(a(1::2), b(2::2), 10, MPI_INTEGER, MPI_SUM, root, both)
  if (me == 0) call same('reduce of a group', b, b(2:20:2), [(1000*other*other + other*(2*i-1), i=1,10)])
  if (me /= 0) call check('reduce of a group outside the root', all(b == -1))
  b = -1
  call MPI_Bcast(a(1::2), 10, MPI_INTEGER, root, both)
  if (root == 0) call same('bcast to a group', a(1::2), a(1::2), [(v(0, 2*i-1), i=1,10)])
  a = [(v(me, i), i=1,20)]
  call MPI_Allgather(a(1::2), 2, MPI_INTEGER, b(1::3), 2, MPI_INTEGER, both)
  call same('allgather between groups', b, b(1:6*other:3), &
   [((v(j, 2*i-1), i=1,2), j=1-mod(me, 2),2*other-mod(me, 2),2)])
  call MPI_Comm_free(both)
  call MPI_Comm_free(half)
 end subroutine

 ! ---- from one to another ----
 subroutine point_to_point()
  integer, asynchronous :: a(5, 8), b(5, 8), c(40)
  integer :: to, from, i, j, n, e(12)
  type(MPI_Request) :: q(2)
  type(MPI_Status) :: s
  to = mod(me+1, ranks)
  from = mod(me+ranks-1, ranks)
  a = reshape([(v(me, i), i=1,40)], shape(a))
  ! 12 elements are a whole section; fewer need not fill its columns
  do n = 0, 12
   b = -1
   c = -1
   call MPI_Sendrecv(a(2:4,2::2), n, MPI_INTEGER, to, 1, c, 40, MPI_INTEGER, from, 1, world, s)
   e = [((v(from, 5*j+i), i=2,4), j=1,7,2)]
   call same('send', c, c(1:n), e(1:n))
   call MPI_Irecv(b(1:5:2,1::2), n, MPI_INTEGER, from, 2, world, q(1))
   call MPI_Isend(a, n, MPI_INTEGER, to, 2, world, q(2))
   call MPI_Waitall(2, q, MPI_STATUSES_IGNORE)
   c(1:12) = flat(b(1:5:2,1::2))
   call same('receive', flat(b), c(1:n), [(v(from, i), i=1,n)])
  end do
  b = -1
  call MPI_Recv_init(b(5:1:-2,8:1:-3), 9, MPI_INTEGER, from, 3, world, q(1))
  call MPI_Send_init(a(5:1:-2,8:1:-3), 9, MPI_INTEGER, to, 3, world, q(2))
  call MPI_Startall(2, q)
  call MPI_Waitall(2, q, MPI_STATUSES_IGNORE)
  call MPI_Request_free(q(1))
  call MPI_Request_free(q(2))
  call same('negative strides', flat(b), flat(b(1::2,2::3)), flat(a(1::2,2::3)) + v(from-me, 0))
  b = -1
  b(1::2,2::3) = a(1::2,2::3)
  call MPI_Sendrecv_replace(b(1::2,2::3), 9, MPI_INTEGER, to, 4, from, 4, world, s)
  call same('sendrecv_replace', flat(b), flat(b(1::2,2::3)), flat(a(1::2,2::3)) + v(from-me, 0))
  call MPI_Bcast(a(2:3,:), 16, MPI_INTEGER, 0, world)
  call same('bcast', flat(a(2:3,:)), flat(a(2:3,:)), [((v(0, 5*j+i), i=2,3), j=0,7)])
  call check('around a bcast', all(a(4,:) == [(v(me, 5*j+4), j=0,7)]))
  i = -1
  call MPI_Sendrecv(me, 1, MPI_INTEGER, to, 5, i, 1, MPI_INTEGER, from, 5, world, s)
  call check('scalars', i == from)
  call assumed_size(a, c)
  call check('assumed size', c(1) == me)
  b = -1
  call MPI_Sendrecv(a(1:0:2,:), 0, MPI_INTEGER, to, 6, b(1:0:2,:), 0, MPI_INTEGER, from, 6, world, s)
  call check('nothing', all(b == -1))
 end subroutine

 subroutine assumed_size(a, c)
  integer, intent(inout) :: a(2, *), c(*)
  a(1,1) = me
  call MPI_Sendrecv(a, 1, MPI_INTEGER, me, 8, c, 1, MPI_INTEGER, me, 8, world, MPI_STATUS_IGNORE)
 end subroutine

 subroutine partitions()
  integer, asynchronous :: a(24), b(24)
  integer :: i
  type(MPI_Request) :: q(2)
  a = [(v(me, i), i=1,24)]
  b = -1
  call MPI_Psend_init(a(1::2), 3, 4_MPI_COUNT_KIND, MPI_INTEGER, mod(me+1, ranks), 1, world, MPI_INFO_NULL, q(1))
  call MPI_Precv_init(b(24:1:-2), 3, 4_MPI_COUNT_KIND, MPI_INTEGER, mod(me+ranks-1, ranks), 1, world, &
   MPI_INFO_NULL, q(2))
  call MPI_Startall(2, q)
  do i = 2, 0, -1
   call MPI_Pready(i, q(1))
  end do
  call MPI_Waitall(2, q, MPI_STATUSES_IGNORE)
  call MPI_Request_free(q(1))
  call MPI_Request_free(q(2))
  call same('partitions', b, b(24:1:-2), [(v(mod(me+ranks-1, ranks), 2*i-1), i=1,12)])
 end subroutine

 ! ---- windows, files, packed data ----
 subroutine elsewhere()
  integer, asynchronous :: a(40), b(40)
  integer, volatile, asynchronous :: memory(40)
  integer :: i, place, to, err
  character(1) :: packed(400)
  type(MPI_Win) :: w
  type(MPI_File) :: f
  integer(MPI_ADDRESS_KIND) :: bytes
  a = [(v(me, i), i=1,40)]
  to = mod(me+1, ranks)
  memory = -1
  bytes = 160
  call MPI_Win_create(memory, bytes, 4, MPI_INFO_NULL, world, w)
  call MPI_Win_fence(0, w)
  call MPI_Put(a(1::4), 10, MPI_INTEGER, to, 0_MPI_ADDRESS_KIND, 10, MPI_INTEGER, w)
  call MPI_Win_fence(0, w)
  call MPI_Accumulate(a(1::4), 10, MPI_INTEGER, to, 0_MPI_ADDRESS_KIND, 10, MPI_INTEGER, MPI_SUM, w)
  call MPI_Win_fence(0, w)
  b = -1
  call MPI_Get(b(2::4), 10, MPI_INTEGER, to, 0_MPI_ADDRESS_KIND, 10, MPI_INTEGER, w)
  call MPI_Win_fence(0, w)
  call same('put, accumulate and get', b, b(2::4), 2*a(1::4))
  call MPI_Win_free(w)

  place = 0
  b = -1
  call MPI_Pack(a(1::3), 14, MPI_INTEGER, packed, 400, place, world)
  place = 0
  call MPI_Unpack(packed, 400, place, b(40:1:-3), 14, MPI_INTEGER, world)
  call same('pack and unpack', b, b(40:1:-3), a(1::3))
  place = 0
  call MPI_Pack(a, 10, MPI_INTEGER, packed(1::2), 200, place, world, err)
  call refused('pack', err)

  call MPI_File_open(MPI_COMM_SELF, name_of_file(), ior(ior(MPI_MODE_CREATE, MPI_MODE_RDWR), &
   MPI_MODE_DELETE_ON_CLOSE), MPI_INFO_NULL, f)
  call MPI_File_write_at(f, 0_MPI_OFFSET_KIND, a(1::4), 10, MPI_INTEGER, MPI_STATUS_IGNORE)
  b = -1
  call MPI_File_read_at(f, 0_MPI_OFFSET_KIND, b(2::4), 10, MPI_INTEGER, MPI_STATUS_IGNORE)
  call same('a file', b, b(2::4), a(1::4))
  call MPI_File_read_at(f, 0_MPI_OFFSET_KIND, b(2::4), 11, MPI_INTEGER, MPI_STATUS_IGNORE, err)
  call refused('read of too much', err)
  call MPI_File_close(f)
 end subroutine

 function name_of_file() result(name)
  character(200) :: name
  character(180) :: directory
  call get_environment_variable('SECTIONS_DIRECTORY', directory)
  if (directory == '') directory = '/tmp'
  write (name, '(2a,i0)') trim(directory), '/sections.', me
 end function

 ! ---- datatypes that are not one element of the array ----
 subroutine datatypes()
  integer :: i, j, a(6*ranks), b(12*ranks), err
  character(5) :: words(2*ranks), got(2*ranks)
  complex :: z(2*ranks), y(3*ranks)
  type(particle) :: p(4), g(2*ranks)
  type(MPI_Datatype) :: pair, four, gaps, one, both
  integer(MPI_ADDRESS_KIND) :: lb, extent

  write (words, '(a,i3.3)') ('w', 10*me+i, i=1,2*ranks)
  got = '?'
  call MPI_Alltoall(words(1::2), 5, MPI_CHARACTER, got(2::2), 5, MPI_CHARACTER, world)
  call check('characters', all(got(1::2) == '?'))
  do j = 0, ranks-1
   write (words(1), '(a,i3.3)') 'w', 10*j+2*me+1
   call check('characters', got(2*j+2) == words(1))
  end do

  z = [(cmplx(me, i), i=1,2*ranks)]
  y = -1
  call MPI_Alltoall(z(1::2), 2, MPI_REAL, y(1::3), 2, MPI_REAL, world)
  call check('parts of complex numbers', all(y(1::3) == [(cmplx(j, 2*me+1), j=0,ranks-1)]) .and. all(y(2::3) == -1))
  call MPI_Allreduce(z(1::2), y(1::3), ranks, MPI_COMPLEX, MPI_SUM, world)
  call check('sums of complex numbers', all(y(1::3) == [(cmplx(ranks*(ranks-1)/2, ranks*(2*i-1)), i=1,ranks)]))
  call MPI_Allreduce(z(1::2), y(1::3), 2*ranks, MPI_REAL, MPI_SUM, world)
  call check('sums of their parts', all(y(1::3) == [(cmplx(ranks*(ranks-1)/2, ranks*(2*i-1)), i=1,ranks)]))

  ! several elements, without gaps and with gaps
  a = [(v(me, i), i=1,6*ranks)]
  call MPI_Type_contiguous(2, MPI_INTEGER, pair)
  call MPI_Type_contiguous(2, pair, four)
  call MPI_Type_commit(four)
  call MPI_Type_commit(pair)
  b = -1
  call MPI_Allgather(a(1::3), 1, pair, b(2::2), 1, pair, world)
  call same('pairs', b, b(2:4*ranks:2), [((v(j, i), i=1,4,3), j=0,ranks-1)])
  b = -1
  call MPI_Allgatherv(a, 1, four, b(1::3), [(1, j=1,ranks)], [(ranks-j, j=1,ranks)], four, world)
  call same('fours', b, b(1::3), [((v(j, i), i=1,4), j=ranks-1,0,-1)])
  call MPI_Type_vector(2, 1, 2, MPI_INTEGER, gaps)
  call MPI_Type_commit(gaps)
  call MPI_Bcast(b(1::3), 1, gaps, 0, world, err)
  call refused('a datatype with gaps', err)

  ! Fortran's own types
  call MPI_Get_address(p(1), lb)
  call MPI_Get_address(p(2), extent)
  call MPI_Type_create_struct(2, [1, 1], [0_MPI_ADDRESS_KIND, 8_MPI_ADDRESS_KIND], &
   [MPI_DOUBLE_PRECISION, MPI_INTEGER], both)
  call MPI_Type_create_resized(both, 0_MPI_ADDRESS_KIND, extent - lb, one)
  call MPI_Type_commit(one)
  do i = 1, 4
   p(i) = particle(me, v(me, i), 1)
  end do
  do i = 1, 2*ranks
   g(i) = particle(-1, -1, -1)
  end do
  call MPI_Allgather(p(4:2:-2), 1, one, g(2::2), 1, one, world)
  call same('particles', g%number, g(2::2)%number, [(v(j, 4), j=0,ranks-1)])
  call check('particles', all(g(2::2)%x == [(j, j=0,ranks-1)]) .and. all(g%unused == -1) .and. all(g(1::2)%x == -1))
  call MPI_Allreduce(MPI_IN_PLACE, g%x, 2*ranks, MPI_DOUBLE_PRECISION, MPI_SUM, world)
  call check('one component', all(g(2::2)%x == [(ranks*j, j=0,ranks-1)]) .and. all(g%unused == -1))
  call MPI_Bcast(p(:)%number, 4, MPI_INTEGER, 0, world)
  call check('one component', all(p%number == [(v(0, i), i=1,4)]) .and. all(p%x == me) .and. all(p%unused == 1))
  call MPI_Type_free(pair)
  call MPI_Type_free(four)
  call MPI_Type_free(gaps)
  call MPI_Type_free(both)
  call MPI_Type_free(one)
 end subroutine

 ! MPI_BOTTOM with addresses
 subroutine bottom()
  integer, asynchronous :: a, b
  type(MPI_Datatype) :: at_a, at_b
  integer(MPI_ADDRESS_KIND) :: address
  a = me
  b = -1
  call MPI_Get_address(a, address)
  call MPI_Type_create_hindexed(1, [1], [address], MPI_INTEGER, at_a)
  call MPI_Get_address(b, address)
  call MPI_Type_create_hindexed(1, [1], [address], MPI_INTEGER, at_b)
  call MPI_Type_commit(at_a)
  call MPI_Type_commit(at_b)
  call MPI_Sendrecv(MPI_BOTTOM, 1, at_a, me, 9, MPI_BOTTOM, 1, at_b, me, 9, world, MPI_STATUS_IGNORE)
  call MPI_F_sync_reg(b)
  call check('MPI_BOTTOM', b == me)
  call MPI_Type_free(at_a)
  call MPI_Type_free(at_b)
 end subroutine

 ! Errors go to the handler of the communicator, or of MPI_COMM_SELF.
 subroutine errors()
  integer :: a(40), b(40), err
  a = 1
  call MPI_Send(a(1::2), 21, MPI_INTEGER, me, 1, world, err)
  call refused('send of too much', err)
  call MPI_Allreduce(a(1::2), b, 21, MPI_INTEGER, MPI_SUM, world, err)
  call refused('allreduce of too much', err)
  call MPI_Allgather(a, 40, MPI_INTEGER, b(1::2), 40, MPI_INTEGER, world, err)
  call refused('allgather of too much', err)
  call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN)
  call MPI_Reduce_local(a(1::2), b, 21, MPI_INTEGER, MPI_SUM, err)
  call refused('reduce_local of too much', err)
  call MPI_Bcast(a(1::2), 1, MPI_REAL8, 0, MPI_COMM_SELF, err)
  call refused('bcast of other elements', err)
 end subroutine
end module

program sections
 use parts
 implicit none
 integer :: way
 call MPI_Init()
 call MPI_Comm_dup(MPI_COMM_WORLD, world)
 call MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN)
 call MPI_Comm_rank(world, me)
 call MPI_Comm_size(world, ranks)
 call check('MPI_SUBARRAYS_SUPPORTED', MPI_SUBARRAYS_SUPPORTED)
 do way = blocking, persistent
  call blocks(way, 1)
  call blocks(way, 5)
  call blocks(way, 20000)
  call planes(way)
  call vectors(way)
 end do
 call neighbors()
 call reductions()
 call groups()
 call point_to_point()
 call partitions()
 call elsewhere()
 call datatypes()
 call bottom()
 call errors()
 call MPI_Allreduce(MPI_IN_PLACE, wrong, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
 if (me == 0 .and. wrong == 0) print '(a)', 'sections: right'
 if (wrong /= 0) call MPI_Abort(MPI_COMM_WORLD, 1)
 call MPI_Finalize()
end program
