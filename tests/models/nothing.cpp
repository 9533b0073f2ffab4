// A shared object without a model.
extern "C" int ulfm_something;
int ulfm_something = 1;
