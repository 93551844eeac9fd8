// For the sanitized tests: a plugin that Open MPI unloads stays, so that the leak detector knows whose code it was.
extern "C" int dlclose(void* /*library*/) {
    return 0;
}
