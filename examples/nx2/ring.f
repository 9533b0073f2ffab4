C     A token goes round the ring of all nodes, and every node adds its
C     number to it.
      PROGRAM RING
      INCLUDE 'fcube.h'
      INTEGER TOKENT, TURNS
      PARAMETER (TOKENT = 100, TURNS = 3)
      INTEGER ME, NODES, NEXT, TOKEN, TURN, EXPECT
      ME = MYNODE()
      NODES = NUMNODES()
      NEXT = MOD(ME + 1, NODES)
      TOKEN = 0
      DO 10 TURN = 1, TURNS
         IF (ME .EQ. 0) THEN
            CALL CSEND(TOKENT, TOKEN, 4, NEXT, MYPID())
            CALL CRECV(TOKENT, TOKEN, 4)
         ELSE
            CALL CRECV(TOKENT, TOKEN, 4)
            TOKEN = TOKEN + ME
            CALL CSEND(TOKENT, TOKEN, 4, NEXT, MYPID())
         ENDIF
   10 CONTINUE
      IF (ME .EQ. 0) THEN
         EXPECT = TURNS * (NODES * (NODES - 1) / 2)
         IF (TOKEN .EQ. EXPECT) THEN
            WRITE (*, 20) NODES, TURNS, TOKEN, 'ok'
         ELSE
            WRITE (*, 20) NODES, TURNS, TOKEN, 'WRONG'
            STOP 1
         ENDIF
   20    FORMAT ('ring: ', I0, ' nodes, ', I0, ' turns, token ', I0,
     &           ': ', A)
      ENDIF
      END
