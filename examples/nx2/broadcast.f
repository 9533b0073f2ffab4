C     Node 0 sends an array to all others at once (node -1), and each
C     node once more along a spanning tree of the cube; both must arrive
C     as they were sent. Works for any number of nodes.
      PROGRAM BCAST
      INCLUDE 'fcube.h'
      INTEGER ATONCE, BYTREE, LENGTH
      PARAMETER (ATONCE = 1, BYTREE = 2, LENGTH = 5000)
      DOUBLE PRECISION TABLE(LENGTH), AGAIN(LENGTH)
      INTEGER ME, NODES, I, WRONG, WORK
      ME = MYNODE()
      NODES = NUMNODES()
      IF (ME .EQ. 0) THEN
         DO 10 I = 1, LENGTH
            TABLE(I) = 1.0D0 / I
            AGAIN(I) = TABLE(I)
   10    CONTINUE
         CALL CSEND(ATONCE, TABLE, 8 * LENGTH, -1, MYPID())
      ELSE
         CALL CRECV(ATONCE, TABLE, 8 * LENGTH)
      ENDIF
      CALL TREE(BYTREE, AGAIN, 8 * LENGTH, ME, NODES)
      WRONG = 0
      DO 20 I = 1, LENGTH
         IF (TABLE(I) .NE. 1.0D0 / I) WRONG = WRONG + 1
         IF (AGAIN(I) .NE. TABLE(I)) WRONG = WRONG + 1
   20 CONTINUE
      CALL GISUM(WRONG, 1, WORK)
      IF (ME .EQ. 0) THEN
         IF (WRONG .EQ. 0) THEN
            WRITE (*, 30) NODES, WRONG, 'ok'
         ELSE
            WRITE (*, 30) NODES, WRONG, 'WRONG'
         ENDIF
   30    FORMAT ('broadcast: ', I0, ' nodes, ', I0, ' wrong: ', A)
      ENDIF
      IF (WRONG .NE. 0) STOP 1
      END

C     In step i the nodes below 2**i, which have it, hand it to those
C     2**i above.
      SUBROUTINE TREE(TYPE, ARRAY, BYTES, ME, NODES)
      INCLUDE 'fcube.h'
      INTEGER TYPE, BYTES, ME, NODES, BIT
      DOUBLE PRECISION ARRAY(*)
      BIT = 1
   10 IF (BIT .GE. NODES) RETURN
      IF (ME .LT. BIT) THEN
         IF (ME + BIT .LT. NODES)
     &      CALL CSEND(TYPE, ARRAY, BYTES, ME + BIT, MYPID())
      ELSE IF (ME .LT. 2 * BIT) THEN
         CALL CRECV(TYPE, ARRAY, BYTES)
      ENDIF
      BIT = BIT * 2
      GOTO 10
      END
