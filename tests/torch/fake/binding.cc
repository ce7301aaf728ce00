// torch/_C as the interpreter loads it: it only calls the library beside it.
extern "C" {
void* initModule();
[[gnu::visibility("default")]] void* PyInit__C();
}
void* PyInit__C() { return initModule(); }
