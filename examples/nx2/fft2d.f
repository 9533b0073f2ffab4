C     The Fourier transform of a plane, there and back. Columns are dealt
C     in blocks; a transform of all columns, a transpose, in which every
C     node has a block for every other, and again of all columns. The
C     transform of two waves is two peaks, and the way back gives the
C     waves again. Works for any number of nodes; beyond N some have no
C     columns.
      PROGRAM FFT2D
      INCLUDE 'fcube.h'
      INTEGER N
      PARAMETER (N = 64)
      COMPLEX*16 A(N, N), B(N, N), WAVES, PEAKS
      EXTERNAL WAVES, PEAKS
      DOUBLE PRECISION ERROR(2), WORK(2)
      INTEGER I, J, LOW, HIGH
      CALL SHARE(N, MYNODE(), LOW, HIGH)
      DO 20 J = LOW, HIGH
         DO 10 I = 0, N - 1
            A(I + 1, J - LOW + 1) = WAVES(I, J, N)
   10    CONTINUE
   20 CONTINUE
      CALL PLANE(A, B, N, 1)
C     The result is transposed: columns of B are rows of the transform.
      CALL COMPAR(B, N, PEAKS, ERROR(1))
      CALL PLANE(B, A, N, -1)
      DO 40 J = 1, HIGH - LOW + 1
         DO 30 I = 1, N
            A(I, J) = A(I, J) / (N * N)
   30    CONTINUE
   40 CONTINUE
      CALL COMPAR(A, N, WAVES, ERROR(2))
      CALL GDHIGH(ERROR, 2, WORK)
      IF (MYNODE() .EQ. 0) THEN
         IF (ERROR(1) .LT. 1D-8 .AND. ERROR(2) .LT. 1D-12) THEN
            WRITE (*, 50) N, N, NUMNODES(), ERROR, 'ok'
         ELSE
            WRITE (*, 50) N, N, NUMNODES(), ERROR, 'WRONG'
         ENDIF
   50    FORMAT ('fft2d: ', I0, ' x ', I0, ' on ', I0, ' nodes, errors ',
     &           1P, E8.1, ' and ', E8.1, ': ', A)
      ENDIF
      IF (ERROR(1) .GE. 1D-8 .OR. ERROR(2) .GE. 1D-12) STOP 1
      END

C     The columns of a node, counted from 0; none if HIGH is below LOW.
      SUBROUTINE SHARE(N, NODE, LOW, HIGH)
      INCLUDE 'fcube.h'
      INTEGER N, NODE, LOW, HIGH
      LOW = NODE * N / NUMNODES()
      HIGH = (NODE + 1) * N / NUMNODES() - 1
      END

C     Two waves across the plane, and their transform. I and J count
C     from 0.
      COMPLEX*16 FUNCTION WAVES(I, J, N)
      INTEGER I, J, N
      DOUBLE PRECISION TURN
      TURN = 8 * ATAN(1D0) / N
      WAVES = EXP((0D0, 1D0) * TURN * (3 * I + 5 * J))
     &      + 2 * EXP((0D0, 1D0) * TURN * (7 * I + J))
      END

      COMPLEX*16 FUNCTION PEAKS(J, I, N)
      INTEGER I, J, N
      PEAKS = 0
      IF (I .EQ. 3 .AND. J .EQ. 5) PEAKS = N * N
      IF (I .EQ. 7 .AND. J .EQ. 1) PEAKS = 2 * N * N
      END

C     The largest difference between a node's columns and what they
C     should be.
      SUBROUTINE COMPAR(A, N, SHOULD, ERROR)
      INCLUDE 'fcube.h'
      INTEGER N, I, J, LOW, HIGH
      COMPLEX*16 A(N, N), SHOULD
      DOUBLE PRECISION ERROR
      ERROR = 0
      CALL SHARE(N, MYNODE(), LOW, HIGH)
      DO 20 J = LOW, HIGH
         DO 10 I = 0, N - 1
            ERROR = MAX(ERROR,
     &                  ABS(A(I + 1, J - LOW + 1) - SHOULD(I, J, N)))
   10    CONTINUE
   20 CONTINUE
      END

C     Transforms a plane A into B; SIGN is 1 there and -1 back.
      SUBROUTINE PLANE(A, B, N, SIGN)
      INTEGER N, SIGN
      COMPLEX*16 A(N, N), B(N, N)
      CALL COLUMS(A, N, SIGN)
      CALL TRANSP(A, B, N)
      CALL COLUMS(B, N, SIGN)
      END

      SUBROUTINE COLUMS(A, N, SIGN)
      INCLUDE 'fcube.h'
      INTEGER N, SIGN, J, LOW, HIGH
      COMPLEX*16 A(N, N)
      CALL SHARE(N, MYNODE(), LOW, HIGH)
      DO 10 J = 1, HIGH - LOW + 1
         CALL FFT(A(1, J), N, SIGN)
   10 CONTINUE
      END

C     B = A transposed. In each step a node exchanges a block with one
C     other: with the one whose number differs in the bits of STEP if
C     the nodes are a power of two, so that no two pairs of a cube are
C     in each other's way; otherwise it sends STEP places up the ring
C     and receives from STEP places down.
      SUBROUTINE TRANSP(A, B, N)
      INCLUDE 'fcube.h'
      INTEGER N, BLOCKT
      PARAMETER (BLOCKT = 1000)
      COMPLEX*16 A(N, N), B(N, N), OUT(64 * 64), IN(64 * 64)
      INTEGER STEP, TO, FROM, MID, COUNT, LOW, HIGH, TLOW, THIGH, I, J
      LOGICAL CUBE
      CUBE = 2 ** NODEDIM() .EQ. NUMNODES()
      CALL SHARE(N, MYNODE(), LOW, HIGH)
      DO 50 STEP = 0, NUMNODES() - 1
         IF (CUBE) THEN
            TO = IEOR(MYNODE(), STEP)
            FROM = TO
         ELSE
            TO = MOD(MYNODE() + STEP, NUMNODES())
            FROM = MOD(MYNODE() - STEP + NUMNODES(), NUMNODES())
         ENDIF
         MID = IRECV(BLOCKT + STEP, IN, 16 * N * N)
         CALL SHARE(N, TO, TLOW, THIGH)
         COUNT = 0
         DO 20 I = TLOW, THIGH
            DO 10 J = LOW, HIGH
               COUNT = COUNT + 1
               OUT(COUNT) = A(I + 1, J - LOW + 1)
   10       CONTINUE
   20    CONTINUE
         CALL CSEND(BLOCKT + STEP, OUT, 16 * COUNT, TO, MYPID())
         CALL MSGWAIT(MID)
         CALL SHARE(N, FROM, TLOW, THIGH)
         COUNT = 0
         DO 40 I = LOW, HIGH
            DO 30 J = TLOW, THIGH
               COUNT = COUNT + 1
               B(J + 1, I - LOW + 1) = IN(COUNT)
   30       CONTINUE
   40    CONTINUE
   50 CONTINUE
      END

C     Cooley and Tukey's transform of N numbers in place, N a power of
C     two.
      SUBROUTINE FFT(X, N, SIGN)
      INTEGER N, SIGN, I, J, M, HALF
      COMPLEX*16 X(N), T, W, STEP
C     Bits of the places reversed.
      J = 1
      DO 20 I = 1, N
         IF (J .GT. I) THEN
            T = X(J)
            X(J) = X(I)
            X(I) = T
         ENDIF
         M = N / 2
   10    IF (M .GE. 1 .AND. J .GT. M) THEN
            J = J - M
            M = M / 2
            GOTO 10
         ENDIF
         J = J + M
   20 CONTINUE
C     Halves of length 1, 2, 4 and so on put together.
      HALF = 1
   30 IF (HALF .GE. N) RETURN
      STEP = EXP((0D0, -1D0) * SIGN * 4 * ATAN(1D0) / HALF)
      W = 1
      DO 50 M = 1, HALF
         DO 40 I = M, N, 2 * HALF
            J = I + HALF
            T = W * X(J)
            X(J) = X(I) - T
            X(I) = X(I) + T
   40    CONTINUE
         W = W * STEP
   50 CONTINUE
      HALF = 2 * HALF
      GOTO 30
      END
