/* calls.c: `calls` lists the uses it knows, `calls NAME` does one. See calls.h. */
#include "calls.h"

#include <unistd.h>

static const use *const all[] = {file_uses, ipc_uses, process_uses};

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    (void)alarm(60); /* a use that hangs is a use that fails */
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        for (const use *u = all[i]; u->name; u++) {
            if (argc < 2)
                printf("%s\n", u->name);
            else if (strcmp(argv[1], u->name) == 0)
                return u->run();
        }
    if (argc < 2)
        return 0;
    printf("no such use: %s\n", argv[1]);
    return 2;
}
