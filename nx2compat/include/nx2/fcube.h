! What Fortran programs for the iPSC/2 and iPSC/860 include.
      include 'fnx.h'
