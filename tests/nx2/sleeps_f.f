C     SLEEP lasts its whole time while messages interrupt it, and their
C     handler runs meanwhile. Node 0 sleeps, node 1 sends.
      PROGRAM SLEEPS
      INCLUDE 'fnx.h'
      INTEGER HITS, TICK
      COMMON /TICKS/ HITS, TICK
      INTEGER I, ID, BEFORE, MS, NONE, BAD
      BAD = 0
      HITS = 0
      IF (MYNODE() .EQ. 0) THEN
        CALL POST
        CALL GSYNC()
        DO 10 I = 1, 20
          BEFORE = HITS
          MS = MCLOCK()
          CALL SLEEP(1)
          MS = MCLOCK() - MS
          IF (MS .LT. 1000) BAD = 1
          IF (MS .LT. 1000) PRINT *, 'SLEEP(1) TOOK', MS, ' MS'
          IF (HITS .GT. BEFORE) GOTO 20
   10   CONTINUE
        PRINT *, 'NO HANDLER RAN DURING SLEEP'
        BAD = 1
   20   CALL CSEND(2, NONE, 0, 1, 0)
        IF (BAD .EQ. 0) PRINT *, 'sleeps_f: ok'
      ELSE
        ID = IRECV(2, NONE, 0)
        CALL GSYNC()
   30   CALL CSEND(1, I, 4, 0, 0)
        CALL NAP()
        IF (MSGDONE(ID) .EQ. 0) GOTO 30
      END IF
      IF (BAD .NE. 0) CALL EXIT(1)
      END

      SUBROUTINE NAP
      DOUBLE PRECISION T, DCLOCK
      T = DCLOCK()
   10 IF (DCLOCK() - T .LT. 0.005D0) GOTO 10
      END

      SUBROUTINE ONTICK(TYPE, COUNT, NODE, PTYPE)
      INTEGER TYPE, COUNT, NODE, PTYPE
      INTEGER HITS, TICK
      COMMON /TICKS/ HITS, TICK
      HITS = HITS + 1
      CALL POST
      END

      SUBROUTINE POST
      EXTERNAL ONTICK
      INTEGER HITS, TICK
      COMMON /TICKS/ HITS, TICK
      CALL HRECV(1, TICK, 4, ONTICK)
      END
