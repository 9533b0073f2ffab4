#include <iostream>
#include <ulfm/ulfm.h>

int main() { std::cout << ulfm_version() << '\n'; }
