C     The host's part of pi: it loads the nodes, tells them how many
C     intervals there are, and prints what they find.
      PROGRAM HOSTPI
      INCLUDE 'fcube.h'
      INTEGER HPID, NPID, INTERV, RESULT
      PARAMETER (HPID = 100, NPID = 0, INTERV = 1, RESULT = 2)
      INTEGER N
      DOUBLE PRECISION PI
      CHARACTER*256 NODE
      CALL GETARG(1, NODE)
      IF (NODE .EQ. ' ') NODE = 'nodepi'
      CALL GETCUBE('picube', ' ', ' ', 0)
      CALL SETPID(HPID)
      CALL LOAD(NODE, -1, NPID)
      N = 100000
      CALL CSEND(INTERV, N, 4, -1, NPID)
      CALL CRECV(RESULT, PI, 8)
      CALL WAITALL(-1, -1)
      CALL RELCUBE('picube')
      IF (ABS(PI - 3.14159265358979D0) .LT. 1D-9) THEN
         WRITE (*, 10) NUMNODES(), PI, 'ok'
      ELSE
         WRITE (*, 10) NUMNODES(), PI, 'WRONG'
         STOP 1
      ENDIF
   10 FORMAT ('pi: ', I0, ' nodes, ', F11.9, ': ', A)
      END
