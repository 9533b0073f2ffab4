#include <stdio.h>
#include <ulfm/ulfm.h>

int main(void) { return printf("%s\n", ulfm_version()) < 0; }
