C     The calls as Fortran makes them: every name, arguments by
C     reference, functions and subroutines.
      PROGRAM CALLSF
      INCLUDE 'fnx.h'
      INTEGER BAD
      COMMON /RESULT/ BAD
      INTEGER ME, NODES, NEXT, BEFORE
      COMMON /PLACE/ ME, NODES, NEXT, BEFORE
      INTEGER WORK
      BAD = 0
      ME = MYNODE()
      NODES = numnodes()
      NEXT = MOD(ME + 1, NODES)
      BEFORE = MOD(ME + NODES - 1, NODES)
      CALL POINTS
      CALL IDS
      CALL HANDLE
      CALL GLOBAL
      CALL OTHERS
      CALL GISUM(BAD, 1, WORK)
      IF (ME .EQ. 0 .AND. BAD .EQ. 0) PRINT *, 'calls_f: ok'
      IF (BAD .NE. 0) STOP 1
      END

      SUBROUTINE CHECK(GOOD, PLACE)
      LOGICAL GOOD
      INTEGER PLACE, BAD
      COMMON /RESULT/ BAD
      IF (GOOD) RETURN
      PRINT *, 'check ', PLACE, ' failed on node ', MYNODE()
      BAD = BAD + 1
      END

      SUBROUTINE POINTS
      INCLUDE 'fnx.h'
      INTEGER ME, NODES, NEXT, BEFORE
      COMMON /PLACE/ ME, NODES, NEXT, BEFORE
      DOUBLE PRECISION X(5000), Y(5000)
      INTEGER I, INFO(8), LIST(2)
      DO 10 I = 1, 5000
   10 X(I) = ME + I * 0.5D0
      Call Csend(10, X, 40000, NEXT, MyPid())
      CALL CRECV(10, Y, 40000)
      CALL CHECK(Y(5000) .EQ. BEFORE + 2500, 1)
      CALL CHECK(INFOCOUNT() .EQ. 40000, 2)
      CALL CHECK(INFONODE() .EQ. BEFORE, 3)
      CALL CHECK(INFOTYPE() .EQ. 10, 4)
      CALL CHECK(INFOPID() .EQ. 0 .AND. INFOPTYPE() .EQ. 0, 5)
      CALL CHECK(MSGINFO(1) .EQ. 10 .AND. MSGINFO(2) .EQ. 40000, 6)
      CALL CHECK(CSENDRECV(11, X, 8, NEXT, 0, 11, Y, 8) .EQ. 8, 7)
      CALL CHECK(Y(1) .EQ. BEFORE + 0.5D0, 8)
C     The same receive with another type of buffer.
      CALL CSEND(12, ME, 4, NEXT, 0)
      CALL CPROBE(12)
      CALL CHECK(IPROBE(12) .EQ. 1 .AND. IPROBE(13) .EQ. 0, 9)
      CALL CPROBEX(12, BEFORE, 0, INFO)
      CALL CHECK(INFO(1) .EQ. 12 .AND. INFO(2) .EQ. 4, 10)
      CALL CHECK(IPROBEX(12, -1, -1, INFO) .EQ. 1, 11)
      CALL CRECVX(12, I, 4, BEFORE, -1, INFO)
      CALL CHECK(I .EQ. BEFORE .AND. INFO(3) .EQ. BEFORE, 12)
      CALL CSEND(14, ME, 4, NEXT, 0)
      CALL CRECVX(14, I, 4, -1, -1, MSGINFO)
      CALL CHECK(INFONODE() .EQ. BEFORE, 13)
      CALL GSYNC()
      LIST(1) = NEXT
      LIST(2) = ME
      CALL GSENDX(15, ME, 4, LIST, 2)
      CALL CRECV(15, I, 4)
      CALL CRECV(15, I, 4)
      CALL CSEND(16, ME, 4, ME, 0)
      CALL FLUSHMSG(16, -1, -1)
      CALL CHECK(IPROBE(16) .EQ. 0, 14)
      END

      SUBROUTINE IDS
      INCLUDE 'fnx.h'
      INTEGER ME, NODES, NEXT, BEFORE
      COMMON /PLACE/ ME, NODES, NEXT, BEFORE
      INTEGER A, B, M1, M2, M, INFO(8)
      M1 = IRECV(20, A, 4)
      M2 = IRECVX(21, B, 4, BEFORE, -1, INFO)
      M = MSGMERGE(M1, M2)
      CALL GSYNC()
      CALL MSGWAIT(ISEND(20, ME, 4, NEXT, 0))
      CALL CSEND(21, NEXT, 4, NEXT, 0)
   10 IF (MSGDONE(M) .EQ. 0) GOTO 10
      CALL CHECK(A .EQ. BEFORE .AND. B .EQ. ME, 20)
      CALL CHECK(INFO(1) .EQ. 21, 21)
      M = ISENDRECV(22, ME, 4, NEXT, 0, 22, A, 4)
      CALL MSGWAIT(M)
      CALL CHECK(A .EQ. BEFORE, 22)
      M = IRECV(23, A, 4)
      CALL MSGCANCEL(M)
      CALL MSGIGNORE(IRECV(24, B, 4))
      CALL CSEND(24, ME, 4, ME, 0)
      CALL CHECK(B .EQ. ME, 23)
      END

      SUBROUTINE TAKEN(TYPE, COUNT, NODE, PTYPE)
      INTEGER TYPE, COUNT, NODE, PTYPE, HITS
      COMMON /CALLED/ HITS
      IF (COUNT .EQ. 4 .AND. PTYPE .EQ. 0 .AND. NODE .GE. 0)
     &   HITS = HITS + TYPE
      END

      SUBROUTINE TAKENX(TYPE, COUNT, NODE, PTYPE, HPARAM)
      INTEGER TYPE, COUNT, NODE, PTYPE, HPARAM, HITS
      COMMON /CALLED/ HITS
      IF (COUNT .EQ. 4) HITS = HITS + HPARAM
      END

      SUBROUTINE HANDLE
      INCLUDE 'fnx.h'
      INTEGER ME, NODES, NEXT, BEFORE
      COMMON /PLACE/ ME, NODES, NEXT, BEFORE
      INTEGER HITS, A, B, C, OLD
      COMMON /CALLED/ HITS
      EXTERNAL TAKEN, TAKENX
      HITS = 0
      OLD = MASKTRAP(1)
      CALL CHECK(OLD .EQ. 0, 30)
      CALL HRECV(100, A, 4, TAKEN)
      CALL HRECVX(200, B, 4, -1, -1, TAKENX, 5000)
      CALL GSYNC()
      CALL HSEND(100, ME, 4, NEXT, 0, TAKEN)
      CALL HSENDX(200, ME, 4, NEXT, 0, TAKENX, 10000)
      CALL HSENDRECV(300, ME, 4, NEXT, 0, 300, C, 4, TAKEN)
      CALL CHECK(HITS .EQ. 0, 31)
      OLD = MASKTRAP(OLD)
      CALL CHECK(OLD .EQ. 1, 32)
   10 CALL FLICK()
      IF (HITS .LT. 15500) GOTO 10
      CALL CHECK(HITS .EQ. 15500, 33)
      CALL CHECK(A .EQ. BEFORE .AND. B .EQ. BEFORE, 34)
      CALL CHECK(C .EQ. BEFORE, 35)
      CALL GSYNC()
      END

      SUBROUTINE LARGER(X, WORK)
      DOUBLE PRECISION X(2), WORK(2)
      IF (WORK(1) .LE. X(1)) RETURN
      X(1) = WORK(1)
      X(2) = WORK(2)
      END

      SUBROUTINE GLOBAL
      INCLUDE 'fnx.h'
      INTEGER ME, NODES, NEXT, BEFORE
      COMMON /PLACE/ ME, NODES, NEXT, BEFORE
      DOUBLE PRECISION D(2), DW(2)
      REAL S(2), SW(2)
      INTEGER I(2), IW(2), N, ALL(100), LENS(100)
      LOGICAL L(1), LW(1)
      EXTERNAL LARGER
      D(1) = ME
      D(2) = 1
      CALL GDSUM(D, 2, DW)
      CALL CHECK(D(1) .EQ. NODES * (NODES - 1) / 2, 40)
      CALL GDPROD(D, 1, DW)
      D(1) = ME
      CALL GDHIGH(D, 1, DW)
      CALL CHECK(D(1) .EQ. NODES - 1, 41)
      D(1) = ME
      CALL GDLOW(D, 1, DW)
      CALL CHECK(D(1) .EQ. 0, 42)
      S(1) = 1
      CALL GSSUM(S, 1, SW)
      CALL CHECK(S(1) .EQ. NODES, 43)
      S(1) = 1
      CALL GSPROD(S, 1, SW)
      S(2) = ME
      CALL GSHIGH(S(2), 1, SW)
      CALL GSLOW(S, 1, SW)
      CALL CHECK(S(1) .EQ. 1 .AND. S(2) .EQ. NODES - 1, 44)
      I(1) = 2
      CALL GIPROD(I, 1, IW)
      CALL CHECK(NODES .GT. 30 .OR. I(1) .EQ. 2**NODES, 45)
      I(1) = ME
      I(2) = ME
      CALL GIHIGH(I(1), 1, IW)
      CALL GILOW(I(2), 1, IW)
      CALL CHECK(I(1) .EQ. NODES - 1 .AND. I(2) .EQ. 0, 46)
      I(1) = 6
      CALL GIAND(I, 1, IW)
      I(2) = 1
      CALL GIOR(I(2), 1, IW)
      CALL CHECK(I(1) .EQ. 6 .AND. I(2) .EQ. 1, 47)
      I(1) = 1
      CALL GIXOR(I, 1, IW)
      CALL CHECK(I(1) .EQ. MOD(NODES, 2), 48)
      L(1) = ME .EQ. 0
      CALL GLOR(L, 1, LW)
      CALL CHECK(L(1), 49)
      L(1) = .TRUE.
      CALL GLAND(L, 1, LW)
      CALL CHECK(L(1), 50)
      L(1) = ME .EQ. 0
      CALL GLXOR(L, 1, LW)
      CALL CHECK(L(1), 51)
      CALL GCOL(ME, 4, ALL, 400, N)
      CALL CHECK(N .EQ. 4 * NODES .AND. ALL(NODES) .EQ. NODES - 1, 52)
      DO 10 N = 1, NODES
         LENS(N) = 4
   10 ALL(N) = -1
      CALL GCOLX(ME, LENS, ALL)
      CALL CHECK(ALL(1) .EQ. 0 .AND. ALL(NODES) .EQ. NODES - 1, 53)
      D(1) = ME
      D(2) = 10 * ME
      CALL GOPF(D, 16, DW, LARGER)
      CALL CHECK(D(2) .EQ. 10 * (NODES - 1), 54)
      END

      SUBROUTINE OTHERS
      INCLUDE 'fnx.h'
      INTEGER ME, NODES, NEXT, BEFORE
      COMMON /PLACE/ ME, NODES, NEXT, BEFORE
      DOUBLE PRECISION START
      INTEGER MS, TICKS(2), _IPROBE, _MSGDONE
      CALL CHECK(GRAY(5) .EQ. 7 .AND. GINV(7) .EQ. 5, 60)
      CALL CHECK(MYHOST() .EQ. NODES, 61)
      CALL CHECK(2**NODEDIM() .GE. NODES, 62)
      CALL SETPTYPE(9)
      CALL CHECK(MYPTYPE() .EQ. 9, 63)
      CALL SETPID(0)
      CALL LED(1)
      START = DCLOCK()
      MS = MCLOCK()
      CALL HWCLOCK(TICKS)
   10 IF (DCLOCK() .LT. START + 0.02D0) GOTO 10
      CALL CHECK(MCLOCK() - MS .GE. 19, 64)
      CALL CLOCKS
      CALL CHECK(_IPROBE(1) .EQ. 0, 65)
      CALL CHECK(_MSGDONE(4711) .EQ. -1, 66)
      END

C     mclock() without a declaration is an intrinsic of GNU Fortran;
C     the clock must be NX's all the same: it goes on during sleep().
      SUBROUTINE CLOCKS
      INTEGER MS
      MS = MCLOCK()
      CALL SLEEP(1)
      CALL CHECK(MCLOCK() - MS .GE. 990, 70)
      END
