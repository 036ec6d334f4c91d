/* quick_malloc.c: the quick program's memory, without a system call for each size.
 *
 * musl's own asks the kernel for a mapping for the first block of nearly every size and gives
 * it back with the last, and every mapping that goes interrupts the other processors that run a
 * part of us: 200 us of a jail's 3 400. A command line needs some hundred blocks and ends. So
 * blocks are cut from one mapping and, once free, kept in a list for their size; only large
 * ones have a mapping of their own.
 *
 * What must hold: a block starts with its size and a seal over its address, size and state with
 * a number nobody outside knows. Who frees twice, frees what was never given out or has written
 * past a block ends the program, at the latest when the block behind is freed or reused. Safe
 * from several threads; not from a signal handler. */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#define CLASSES   25u             /* 32, 48, 64, 96 ... */
#define SMALL_MAX (32u << 12)     /* the last of them; what is larger has its own mapping */
#define REGION    (1024u * 1024u) /* pages that are never touched cost nothing */
#define PAGE      4096u

enum { USED = 0x5ca1ab1e, UNUSED = 0x0ff1cedd };

typedef struct head {
    size_t room; /* bytes that follow */
    uint64_t seal;
} head;

typedef struct spare {
    head head;
    uintptr_t next; /* a spare, hidden */
} spare;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uintptr_t lists[CLASSES]; /* hidden like `next`; 0: empty */
static char *region;
static size_t region_left;

/* Of the kernel's, for this process. The other half of them guards the stack. */
static uintptr_t secret(void)
{
    static uintptr_t kept; /* whoever is first, it is the same */
    uintptr_t s = __atomic_load_n(&kept, __ATOMIC_RELAXED);

    if (!s) {
        memcpy(&s, (const char *)getauxval(AT_RANDOM) + 8, sizeof(s));
        __atomic_store_n(&kept, s, __ATOMIC_RELAXED);
    }
    return s;
}

static size_t class_room(unsigned class)
{
    return (size_t)(class % 2 ? 48 : 32) << (class / 2);
}

static unsigned class_of(size_t size)
{
    unsigned class = 0;

    while (class_room(class) < size)
        class ++;
    return class;
}

static uint64_t seal_of(const head *h, unsigned state)
{
    return (uint64_t)secret() ^ (uintptr_t)h ^ ((uint64_t)h->room << 17) ^ state;
}

static void check(const head *h, unsigned state)
{
    if (h->seal != seal_of(h, state))
        abort();
}

static void *give(head *h, size_t room)
{
    h->room = room;
    h->seal = seal_of(h, USED);
    return h + 1;
}

static void *map(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return p == MAP_FAILED ? NULL : p;
}

/* With the lock held. NULL: no memory. */
static head *cut(size_t size)
{
    if (size > region_left) {
        char *more = map(REGION);
        if (!more)
            return NULL;
        region = more; /* what the old one had left stays unused */
        region_left = REGION;
    }
    head *h = (head *)(void *)region;
    region += size;
    region_left -= size;
    return h;
}

static head *take_small(unsigned class, bool *ret_clean)
{
    (void)pthread_mutex_lock(&lock);
    head *h = NULL;
    *ret_clean = lists[class] == 0;
    if (lists[class]) {
        spare *s = (spare *)(lists[class] ^ secret());
        check(&s->head, UNUSED);
        lists[class] = s->next;
        h = &s->head;
    } else {
        h = cut(sizeof(*h) + class_room(class));
    }
    (void)pthread_mutex_unlock(&lock);
    return h;
}

static head *take_large(size_t size, size_t *ret_room)
{
    size_t all = (size + sizeof(head) + PAGE - 1) & ~(size_t)(PAGE - 1);

    *ret_room = all - sizeof(head);
    return size > PTRDIFF_MAX - PAGE ? NULL : map(all);
}

static void *take(size_t size, bool *ret_clean)
{
    bool small = size <= SMALL_MAX;
    unsigned class = small ? class_of(size) : 0;
    size_t room = small ? class_room(class) : 0;

    *ret_clean = true;
    head *h = small ? take_small(class, ret_clean) : take_large(size, &room);
    if (!h)
        errno = ENOMEM;
    return h ? give(h, room) : NULL;
}

void *malloc(size_t size)
{
    bool clean;

    return take(size, &clean);
}

void *calloc(size_t count, size_t size)
{
    bool clean = false;
    size_t all;

    if (__builtin_mul_overflow(count, size, &all)) {
        errno = ENOMEM;
        return NULL;
    }
    void *p = take(all, &clean);
    if (p && !clean)
        memset(p, 0, all);
    return p;
}

void free(void *p)
{
    if (!p)
        return;
    head *h = (head *)p - 1;
    check(h, USED);
    if (h->room > SMALL_MAX) {
        int e = errno;
        (void)munmap(h, sizeof(*h) + h->room);
        errno = e;
        return;
    }
    unsigned class = class_of(h->room);
    spare *s = (spare *)(void *)h;
    (void)pthread_mutex_lock(&lock);
    s->head.seal = seal_of(h, UNUSED);
    s->next = lists[class];
    lists[class] = (uintptr_t)s ^ secret();
    (void)pthread_mutex_unlock(&lock);
}

/* Both sizes are large: the kernel moves pages, nobody copies. */
static void *resize_large(head *h, size_t size)
{
    size_t all = (size + sizeof(*h) + PAGE - 1) & ~(size_t)(PAGE - 1);
    void *moved = size > PTRDIFF_MAX - PAGE
                      ? MAP_FAILED
                      : mremap(h, sizeof(*h) + h->room, all, MREMAP_MAYMOVE);

    if (moved == MAP_FAILED) {
        errno = ENOMEM;
        return NULL;
    }
    return give(moved, all - sizeof(*h));
}

void *realloc(void *p, size_t size)
{
    if (!p)
        return malloc(size);
    head *h = (head *)p - 1;
    check(h, USED);
    if (size <= h->room && size >= h->room / 4)
        return p;
    if (size > SMALL_MAX && h->room > SMALL_MAX)
        return resize_large(h, size);
    void *other = malloc(size);
    if (!other)
        return NULL;
    memcpy(other, p, size < h->room ? size : h->room);
    free(p);
    return other;
}

/* Nothing here asks for more than malloc gives; refused where somebody would. */
void *aligned_alloc(size_t alignment, size_t size)
{
    if (alignment <= sizeof(head))
        return malloc(size);
    errno = ENOMEM;
    return NULL;
}

void *memalign(size_t alignment, size_t size)
{
    return aligned_alloc(alignment, size);
}

size_t malloc_usable_size(void *p)
{
    return p ? ((head *)p - 1)->room : 0;
}
