#!/bin/bash
# Compilers and build systems.
# shellcheck source=tests/works/lib.sh disable=SC2016
. "${0%/*}/lib.sh"

hello='echo "#include <stdio.h>
int main(void) { puts(\"hello\"); return 0; }" >hello.c
'
works "gcc: compile, link and run" gcc "$hello"'
gcc -O2 -Wall -o hello hello.c && [ "$(./hello)" = hello ]'
works "gcc: a program run in /tmp and at home" gcc "$hello"'
gcc -o /tmp/hello hello.c && [ "$(/tmp/hello)" = hello ]
gcc -pipe -o ~/hello hello.c && [ "$(~/hello)" = hello ]'
works "gcc: -static" gcc "$hello"'
gcc -static -o hello hello.c && [ "$(./hello)" = hello ]'
works "gcc: link-time optimisation and debugging information" gcc "$hello"'
gcc -flto -g3 -o hello hello.c && [ "$(./hello)" = hello ]'
works "gcc: a shared library, by rpath and by LD_LIBRARY_PATH" gcc '
echo "int seven(void) { return 7; }" >seven.c
echo "int seven(void); int main(void) { return seven() != 7; }" >main.c
gcc -shared -fPIC -o libseven.so seven.c
gcc -o main main.c -L. -lseven && LD_LIBRARY_PATH=. ./main
gcc -o main main.c -L. -lseven -Wl,-rpath,"\$ORIGIN" && ./main
ldd ./main | grep -q libseven.so'
works "gcc: -pthread and dlopen" gcc '
cat >t.c <<"C"
#include <dlfcn.h>
#include <pthread.h>
static void *f(void *p) { return p; }
int main(void)
{
    pthread_t t[20];
    void *r, *m = dlopen("libm.so.6", RTLD_NOW);
    for (long i = 0; i < 20; i++)
        if (pthread_create(&t[i], 0, f, (void *)i)) return 1;
    for (long i = 0; i < 20; i++)
        if (pthread_join(t[i], &r) || r != (void *)i) return 2;
    return !m || !dlsym(m, "cos");
}
C
gcc -pthread -o t t.c -ldl && ./t'
works "gcc: address and undefined-behaviour sanitizers, leaks too" gcc '
echo "#include <stdlib.h>
int main(void) { int *p = malloc(4); *p = 1; int r = *p - 1; free(p); return r; }" >s.c
gcc -fsanitize=address,undefined -o s s.c && ./s'
works "g++: the standard library, threads, exceptions" g++ '
cat >t.cc <<"C"
#include <atomic>
#include <filesystem>
#include <iostream>
#include <stdexcept>
#include <thread>
#include <vector>
int main()
{
    std::atomic<int> n{0};
    std::vector<std::thread> v;
    for (int i = 0; i < 8; i++) v.emplace_back([&] { n++; });
    for (auto &t : v) t.join();
    try { throw std::runtime_error("x"); } catch (const std::exception &) { n++; }
    std::cout << n << std::filesystem::exists("t.cc") << std::endl;
}
C
g++ -std=c++17 -pthread -o t t.cc && [ "$(./t)" = 91 ]'
works "clang: compile and run" clang "$hello"'
clang -o hello hello.c && [ "$(./hello)" = hello ]'
# --output-sync locks what it writes to. /dev/null is the host's, and so are its locks: any other
# make of this machine that is stopped while it has that one would hold up ours.
works "make -j" "make gcc" '
printf "int main(void) { return 0; }\n" >main.c
for i in $(seq 12); do echo "int f$i(void) { return $i; }" >f$i.c; done
printf "OBJ = \$(patsubst %%.c,%%.o,\$(wildcard *.c))\nprog: \$(OBJ)\n\t\$(CC) -o \$@ \$^\n" >Makefile
make -s -j4 && ./prog && [ "$(make)" = "make: '"'prog'"' is up to date." ]
make -j4 --output-sync=target -B >sync.log && grep -q main.o sync.log'
works "meson and ninja" "meson ninja gcc" "$hello"'
cat >meson.build <<"M"
project("x", "c")
test("t", executable("h", "hello.c"))
M
sed -i "s/\"/\x27/g" meson.build
meson setup b && ninja -C b && meson test -C b'
works "cmake, configured, built and tested" "cmake make gcc" "$hello"'
printf "cmake_minimum_required(VERSION 3.10)\nproject(x C)\nenable_testing()
add_executable(h hello.c)\nadd_test(NAME t COMMAND h)\n" >CMakeLists.txt
cmake -S . -B b && cmake --build b -j2 && cd b && ctest'
works "pkg-config and the linker cache" "pkg-config ldconfig" '
pkg-config --version && ldconfig -p | grep -q "libc\.so"'
works "ar, nm, objdump, strip" "ar nm objdump strip gcc" "$hello"'
gcc -c hello.c && ar rcs lib.a hello.o && nm lib.a | grep -q main
objdump -d hello.o >/dev/null && strip hello.o'
works "ccache-like caches at home" "gcc" "$hello"'
mkdir -p ~/.cache/cc && gcc -c hello.c -o ~/.cache/cc/x.o && ln ~/.cache/cc/x.o ~/.cache/cc/y.o
cp --reflink=auto ~/.cache/cc/y.o . && gcc -o hello y.o && ./hello'
works "java: compile and run" "javac java" '
echo "class A { public static void main(String[] a) throws Exception {
Thread t = new Thread(() -> System.out.print(\"good\")); t.start(); t.join();
System.out.println(\"bye\" + (Runtime.getRuntime().availableProcessors() > 0)); } }" >A.java
javac A.java && [ "$(java -cp . A)" = goodbyetrue ]'

# Rust often lives in somebody's home: granted, it works. The user's own home is out of reach of
# this script's HOME, so the one of the passwd file is asked.
rust=$(getent passwd "$(id -u)" | cut -d: -f6)
if [ -x "$rust/.cargo/bin/cargo" ] && [ -d "$rust/.rustup" ]; then
    works "cargo: build, test and run of a new project" "" '
export PATH=$PATH:$R/.cargo/bin RUSTUP_HOME=$R/.rustup CARGO_HOME=~/.cargo
cargo new -q --vcs none x && cd x && cargo build -q --offline && cargo test -q --offline && cargo run -q --offline' \
        --read "$rust/.cargo" --read "$rust/.rustup" --env "R=$rust"
else
    works "cargo: build, test and run of a new project" "cargo rustc" '
cargo new -q --vcs none x && cd x && cargo build -q --offline && cargo test -q --offline && cargo run -q --offline'
fi
works "go: build and run" go '
printf "package main\nfunc main() { println(1) }\n" >main.go && go run main.go'
