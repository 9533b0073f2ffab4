C     C = A * B on a q by q grid of nodes, by Cannon's algorithm: blocks
C     of A move left, blocks of B move up, one place in each of q steps.
C     Nodes beyond the largest square take no part but the last one, the
C     check.
      PROGRAM MATMUL1
      INCLUDE 'fcube.h'
      INTEGER N
      PARAMETER (N = 24)
      DOUBLE PRECISION A(N, N), B(N, N), C(N, N)
      INTEGER ME, Q, WRONG, WORK
      ME = MYNODE()
      Q = INT(SQRT(REAL(NUMNODES()) + 0.5))
      WRONG = 0
      IF (ME .LT. Q * Q) THEN
         CALL CANNON(A, B, C, N, Q, ME / Q, MOD(ME, Q))
         CALL CHECK(C, N, Q, ME / Q, MOD(ME, Q), WRONG)
      ENDIF
      CALL GISUM(WRONG, 1, WORK)
      IF (ME .EQ. 0) THEN
         IF (WRONG .EQ. 0) THEN
            WRITE (*, 10) Q * N, Q * N, Q, Q, WRONG, 'ok'
         ELSE
            WRITE (*, 10) Q * N, Q * N, Q, Q, WRONG, 'WRONG'
         ENDIF
   10    FORMAT ('matmul: ', I0, ' x ', I0, ' on ', I0, ' x ', I0,
     &           ' nodes, ', I0, ' wrong: ', A)
      ENDIF
      IF (WRONG .NE. 0) STOP 1
      END

C     Elements of the whole A and B: small whole numbers, so that sums
C     are exact. Rows and columns count from 0.
      DOUBLE PRECISION FUNCTION AOF(I, J)
      INTEGER I, J
      AOF = MOD(I * 7 + J * 3, 11) - 5
      END

      DOUBLE PRECISION FUNCTION BOF(I, J)
      INTEGER I, J
      BOF = MOD(I * 5 + J * 2, 13) - 6
      END

      SUBROUTINE CANNON(A, B, C, N, Q, ROW, COL)
      INCLUDE 'fcube.h'
      INTEGER N, Q, ROW, COL
      DOUBLE PRECISION A(N, N), B(N, N), C(N, N), AOF, BOF
      INTEGER TYPEA, TYPEB
      PARAMETER (TYPEA = 10, TYPEB = 20)
      INTEGER I, J, K, STEP
C     The blocks begin where Cannon's skew would have brought them.
      K = MOD(ROW + COL, Q)
      DO 20 J = 1, N
         DO 10 I = 1, N
            A(I, J) = AOF(ROW * N + I - 1, K * N + J - 1)
            B(I, J) = BOF(K * N + I - 1, COL * N + J - 1)
            C(I, J) = 0
   10    CONTINUE
   20 CONTINUE
      DO 60 STEP = 1, Q
         DO 50 J = 1, N
            DO 40 K = 1, N
               DO 30 I = 1, N
                  C(I, J) = C(I, J) + A(I, K) * B(K, J)
   30          CONTINUE
   40       CONTINUE
   50    CONTINUE
         IF (STEP .LT. Q) THEN
            CALL SHIFT(TYPEA + STEP, A, N * N,
     &                 ROW * Q + MOD(COL + Q - 1, Q))
            CALL SHIFT(TYPEB + STEP, B, N * N,
     &                 MOD(ROW + Q - 1, Q) * Q + COL)
         ENDIF
   60 CONTINUE
      END

C     Sends a block to one node and takes another's in its place.
      SUBROUTINE SHIFT(TYPE, BLOCK, LENGTH, TO)
      INCLUDE 'fcube.h'
      INTEGER TYPE, LENGTH, TO, MID, I
      DOUBLE PRECISION BLOCK(LENGTH), NEXT(10000)
      MID = IRECV(TYPE, NEXT, 8 * LENGTH)
      CALL CSEND(TYPE, BLOCK, 8 * LENGTH, TO, MYPID())
      CALL MSGWAIT(MID)
      DO 10 I = 1, LENGTH
         BLOCK(I) = NEXT(I)
   10 CONTINUE
      END

      SUBROUTINE CHECK(C, N, Q, ROW, COL, WRONG)
      INTEGER N, Q, ROW, COL, WRONG, I, J, K
      DOUBLE PRECISION C(N, N), AOF, BOF, SUM
      DO 30 J = 1, N
         DO 20 I = 1, N
            SUM = 0
            DO 10 K = 0, Q * N - 1
               SUM = SUM + AOF(ROW * N + I - 1, K)
     &                   * BOF(K, COL * N + J - 1)
   10       CONTINUE
            IF (SUM .NE. C(I, J)) WRONG = WRONG + 1
   20    CONTINUE
   30 CONTINUE
      END
