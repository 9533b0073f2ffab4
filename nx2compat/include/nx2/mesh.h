/* What programs for the Touchstone Delta include. */
#include "nx.h"
