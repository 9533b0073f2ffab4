/* What programs for the iPSC/2 and iPSC/860 include. */
#include "nx.h"
