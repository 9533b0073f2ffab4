#include <ulfm/ulfm.h>
#include <iostream>

int main() { std::cout << ulfm_version() << '\n'; }
