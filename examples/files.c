/* files.c: file calls. Writes a file in the workspace, edits it, searches it and lists it, as
 * an agent's tools would. File calls need no process inside the sandbox, and reach exactly what
 * its commands reach.
 *
 *   cc -std=c11 -Wall files.c $(pkg-config --cflags --libs caisson) -o files && ./files */
#include <caisson/caisson.h>
#include <stdio.h>
#include <string.h>

static const char text[] = "apples 3\npears 5\nplums 8\n";

/* Replaces exactly one place: CSN_NO_MATCH without one, CSN_AMBIGUOUS with several. */
static csn_status buy_pears(csn_sandbox *sb, csn_error **err)
{
    const csn_edit_item edit = {.old_string = "pears 5", .new_string = "pears 6"};

    return csn_edit(sb, "notes/fruit.txt", &edit, 1, 0, NULL, err);
}

static csn_status find_pears(csn_sandbox *sb, csn_error **err)
{
    csn_grep_result *found = NULL;
    csn_status st =
        csn_grep(sb, "pears", CSN_OPTS(csn_grep_opts, .glob = "*.txt"), &found, err);

    for (size_t i = 0; st == CSN_OK && i < found->count; i++)
        printf("%s:%d: %s\n", found->items[i].path, (int)found->items[i].line,
               found->items[i].text);
    csn_grep_result_free(found);
    return st;
}

static csn_status list_notes(csn_sandbox *sb, csn_error **err)
{
    csn_file_list *list = NULL;
    csn_status st = csn_list(sb, "notes", 0, &list, err);

    for (size_t i = 0; st == CSN_OK && i < list->count; i++)
        printf("%s, %d bytes\n", list->items[i].path, (int)list->items[i].file_size);
    csn_file_list_free(list);
    return st;
}

int main(void)
{
    csn_sandbox *sb = NULL;
    csn_read_result *outside = NULL;
    csn_error *err = NULL;
    int ok = csn_open(NULL, &sb, &err) == CSN_OK &&
             csn_write(sb, "notes/fruit.txt", text, strlen(text), NULL, NULL, &err) == CSN_OK &&
             buy_pears(sb, &err) == CSN_OK && find_pears(sb, &err) == CSN_OK &&
             list_notes(sb, &err) == CSN_OK;

    if (!ok)
        fprintf(stderr, "%s\n", csn_error_message(err));
    /* The passwords of the host are not there. An error has a code for programs and a text. */
    else if (csn_read(sb, "/etc/shadow", NULL, &outside, &err) != CSN_OK)
        printf("/etc/shadow: %s\n", csn_status_name(csn_error_code(err)));
    csn_read_result_free(outside);
    csn_close(sb);
    csn_error_free(err);
    return ok ? 0 : 1;
}
