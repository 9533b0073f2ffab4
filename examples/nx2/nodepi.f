C     A node's part of pi: the midpoint rule for 4/(1+x*x) from 0 to 1,
C     every NUMNODES()-th interval.
      PROGRAM NODEPI
      INCLUDE 'fcube.h'
      INTEGER HPID, INTERV, RESULT
      PARAMETER (HPID = 100, INTERV = 1, RESULT = 2)
      INTEGER N, I
      DOUBLE PRECISION WIDTH, X, SUM, WORK
      CALL CRECV(INTERV, N, 4)
      WIDTH = 1.0D0 / N
      SUM = 0
      DO 10 I = MYNODE(), N - 1, NUMNODES()
         X = (I + 0.5D0) * WIDTH
         SUM = SUM + 4 / (1 + X * X)
   10 CONTINUE
      SUM = SUM * WIDTH
      CALL GDSUM(SUM, 1, WORK)
      IF (MYNODE() .EQ. 0) CALL CSEND(RESULT, SUM, 8, MYHOST(), HPID)
      STOP
      END
