! NX/2 and NX for Fortran, fixed and free form.
      integer*4 csendrecv, gray, ginv
      integer*4 mynode, numnodes, myhost, mypid, myptype, nodedim
      integer*4 infocount, infonode, infotype, infoptype, infopid
      integer*4 iprobe, iprobex, irecv, irecvx, isend, isendrecv
      integer*4 msgdone, msgmerge, masktrap, mclock
      double precision dclock
      external csendrecv, gray, ginv
      external mynode, numnodes, myhost, mypid, myptype, nodedim
      external infocount, infonode, infotype, infoptype, infopid
      external iprobe, iprobex, irecv, irecvx, isend, isendrecv
      external msgdone, msgmerge, masktrap, mclock, dclock
      integer*4 msginfo(8)
      common /msginfo/ msginfo
