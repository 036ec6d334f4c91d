/* list.h: intrusive lists of structs with a `next` pointer and a `link` to what points to them.
 *
 * next and link are the names of the members. A `link` of NULL: in no list. */
#pragma once

#define CSN_LIST_PUSH(head, item, next, link)                                                  \
    do {                                                                                       \
        (item)->next = *(head);                                                                \
        (item)->link = (head);                                                                 \
        if ((item)->next)                                                                      \
            (item)->next->link = &(item)->next;                                                \
        *(head) = (item);                                                                      \
    } while (0)

#define CSN_LIST_REMOVE(item, next, link)                                                      \
    do {                                                                                       \
        if (!(item)->link)                                                                     \
            break;                                                                             \
        *(item)->link = (item)->next;                                                          \
        if ((item)->next)                                                                      \
            (item)->next->link = (item)->link;                                                 \
        (item)->link = NULL;                                                                   \
    } while (0)
