/* list.h: intrusive lists whose items can be removed without their head.
 *
 * `next` and `link` name two members of the item: `next` points to the next item, `link` to the
 * pointer that points to this item. An item with a NULL link is in no list. */
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
