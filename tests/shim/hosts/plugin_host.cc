// plugin_host PLUGIN: loads it locally, calls it, unloads it, and once more. Knows nothing of MPI.
#include <dlfcn.h>

#include <cstdio>

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  for (int i = 0; i < 2; ++i) {
    void* plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (plugin == nullptr) {
      std::printf("%s\n", dlerror());
      return 1;
    }
    auto* run = reinterpret_cast<int (*)()>(dlsym(plugin, "plugin_run"));
    std::printf("plugin says %d\n", run());
    std::printf("dlerror says %s\n", dlerror() == nullptr ? "nothing" : "something");
    dlclose(plugin);
  }
  return 0;
}
