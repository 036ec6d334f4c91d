/* limits.h: every limit that is not configurable. */
#pragma once

#define CSN_TIMEOUT_MS_DEFAULT   30000u
#define CSN_OUTPUT_MAX_DEFAULT   (1024u * 1024u)
#define CSN_PIDS_DEFAULT         1024u
#define CSN_DISK_DEFAULT         (1ull << 30) /* /tmp, the home and /dev/shm together */
#define CSN_LIFETIME_MS_DEFAULT  300000u      /* of sandboxes on other machines */
#define CSN_OUTPUT_MAX_CEILING   (1024u * 1024u * 1024u)
#define CSN_READ_LINES_DEFAULT   2000u
#define CSN_READ_BYTES_DEFAULT   (256u * 1024u)
#define CSN_READ_IMAGE_MAX       (16u * 1024u * 1024u)
#define CSN_READ_BYTES_CEILING   (1024u * 1024u * 1024u)
#define CSN_COUNT_LINES_MAX      (64u * 1024u * 1024u) /* bytes scanned for total_lines */
#define CSN_EDIT_FILE_MAX        (64u * 1024u * 1024u)
#define CSN_DIFF_LINES_MAX       (1u << 20)   /* of one side, that are compared one by one */
#define CSN_DIFF_STEPS_MAX       (1ull << 27) /* comparisons of one diff */
#define CSN_LIST_MAX             1000000u
#define CSN_GLOB_MAX             1000000u
#define CSN_GLOB_BRACES_MAX      256u  /* patterns that braces may expand to */
#define CSN_GLOB_STEPS_MAX       1024u /* braces opened on the way there */
#define CSN_GREP_MATCHES_DEFAULT 10000u
#define CSN_GREP_LINE_MAX        (64u * 1024u) /* bytes of one line that are kept */
#define CSN_GREP_FILE_MAX        (1024u * 1024u * 1024u)
#define CSN_WRITE_MANY_MAX       10000u
#define CSN_ID_RANDOM            8u     /* base36 digits at the end of an id */
#define CSN_PATH_MAX             4096u  /* as the kernel's, NUL included */
#define CSN_KEEPER_PAUSE_MS      10000u /* processes are stopped at most this long */
#define CSN_NAME_BYTES_MAX       63u    /* of a sandbox's or session's name */
#define CSN_ARGV_BYTES_MAX       (2u * 1024u * 1024u)
#define CSN_ARGV_COUNT_MAX       65536u
#define CSN_GRACE_MS             200u /* between SIGTERM and SIGKILL */
#define CSN_KILL_STEP_MS         300u /* after the grace: a keeper that has not run is killed */
#define CSN_KILL_MAX_MS          1000u  /* after the grace: one that still has not finished */
#define CSN_DRAIN_MS             100u   /* for output of a grandchild that holds the pipe */
#define CSN_KEEPER_SPEC_MS       60000u /* how long a detached keeper waits for its spec */
#define CSN_KEEPER_ANSWER_MS     5000u  /* after this silence a keeper counts as broken */
#define CSN_GATEWAY_AUDIT_MS     250u   /* wait for events that a later call can read as well */
#define CSN_GATEWAY_CONNECT_MS   500u   /* for a place in the queue of its socket */
#define CSN_GATEWAY_END_MS       300u   /* then one that should end by itself is killed */
#define CSN_JSON_BYTES_MAX       (64u * 1024u * 1024u) /* of one document read */
#define CSN_JSON_DEPTH_MAX       512u                  /* containers in containers */
#define CSN_AUDIT_LINE_MAX       32768u
#define CSN_AUDIT_KEEP_DAYS      30u                     /* days of use, by default */
#define CSN_AUDIT_MAX            (1ull << 30)            /* bytes of all logs, by default */
#define CSN_AUDIT_DAYS_MAX       4000u                   /* days of use that are remembered */
#define CSN_PATCH_BYTES_MAX      (1024u * 1024u * 1024u) /* of csn_diff */
#define CSN_TAR_ENTRIES_MAX      1000000u
#define CSN_TAR_BYTES_MAX        (16ull * 1024u * 1024u * 1024u)
/* copy-on-write workspaces: commands decide what their layers contain */
#define CSN_LAYER_CHANGES_MAX     1000000u /* of one list; also the names of one directory */
#define CSN_LAYER_PATH_MAX        65536u   /* bytes of one path, NUL included */
#define CSN_LAYER_PATHS_BYTES_MAX (512ull * 1024u * 1024u) /* of all paths of one list */
#define CSN_DIFF_FILE_MAX         (16u * 1024u * 1024u) /* larger files: by hash in patches */
/* commits of copy-on-write workspaces */
#define CSN_MERGE_TEXT_MAX    (1024u * 1024u) /* of a file that both sides changed */
#define CSN_JOURNAL_BYTES_MAX (1024u * 1024u * 1024u)
#define CSN_ORIGINAL_MAX      (1024u * 1024u) /* of a file of the base whose content is kept */
/* the MCP server */
#define CSN_RPC_BYTES_MAX       (32u * 1024u * 1024u) /* of one message */
#define CSN_RPC_DEPTH_MAX       64u
#define CSN_RPC_VALUES_MAX      65536u /* in one message: a value costs far more than its text */
#define CSN_RPC_ID_MAX          256u   /* of an id as JSON, NUL included */
#define CSN_MCP_ANSWER_MAX      (64u * 1024u * 1024u)
#define CSN_MCP_CALLS_MAX       256u    /* tool calls running at once */
#define CSN_MCP_QUEUE_MAX       1024u   /* tool calls queued while all of those run */
#define CSN_MCP_TIMEOUT_MS      120000u /* default timeout of a command */
#define CSN_MCP_TIMEOUT_MS_MAX  600000u /* longest timeout that a model may request */
#define CSN_MCP_OUTPUT_MAX      30000u  /* bytes of one stream in a reply to the model */
#define CSN_MCP_OUTPUT_CEILING  (8u * 1024u * 1024u)
#define CSN_MCP_READ_MAX        (100u * 1024u)
#define CSN_MCP_IMAGE_MAX       (3840u * 1024u) /* 5 MiB in base64: models take no more */
#define CSN_MCP_LIST_MAX        1000u           /* names of one answer */
#define CSN_MCP_GREP_MAX        250u            /* lines of one answer, by default */
#define CSN_MCP_CURSORS_MAX     256u     /* processes whose output is read step by step */
#define CSN_MCP_SESSIONS_MAX    64u      /* conversations over HTTP at once */
#define CSN_MCP_SESSION_IDLE_MS 3600000u /* idle time after which one is closed */
#define CSN_HTTP_CONNS_MAX      1024u
#define CSN_HTTP_ARRIVE_MS      30000u /* time for a whole request to arrive */
#define CSN_HTTP_IDLE_S         60u
/* the keeper and its clients */
#define CSN_KEEPER_MSG_MAX      (64u * 1024u) /* one packet; larger bodies travel in a memfd */
#define CSN_KEEPER_BODY_MAX     (16u * 1024u * 1024u)
#define CSN_KEEPER_FDS_MAX      48u  /* descriptors of one message */
#define CSN_KEEPER_CONNS_MAX    256u /* connections to one keeper */
#define CSN_KEEPER_BACKLOG      128u
#define CSN_KEEPER_JOBS_MAX     4096u /* commands at once */
#define CSN_KEEPER_ENDED_MAX    256u  /* background processes kept after their end */
#define CSN_KEEPER_ENDED_BYTES  (64ull * 1024u * 1024u) /* of their logs, together */
#define CSN_KEEPER_WAITERS_MAX  4096u                   /* deferred replies */
#define CSN_KEEPER_KEPT_MAX     8u                      /* channels kept for the next command */
#define CSN_KEEPER_DRAINS_MAX   256u /* pipes read after their command has ended */
#define CSN_KEEPER_SESSIONS_MAX 256u
#define CSN_KEEPER_REFUSED_MAX  16u           /* refused names told to one command */
#define CSN_KEEPER_REMOVE_MAX   16u           /* directories a keeper removes at its end */
#define CSN_KEEPER_END_MS       10000u        /* wait for unkillable processes at its end */
#define CSN_LOG_CHUNK_MAX       (60u * 1024u) /* bytes of one answer to LOGS */
#define CSN_COMMAND_TEXT_MAX    1024u         /* of a background process, for ps */
#define CSN_PROC_SCAN_MAX       262144u       /* processes one scan of /proc remembers */
#define CSN_SOCKET_SEARCH_MAX   20000u        /* entries that one search for sockets examines */
#define CSN_PIPE_GROW_BYTES     (1024u * 1024u)       /* size of a pipe that proved busy */
#define CSN_START_INPUT_MAX     (64u * 1024u * 1024u) /* stdin given to a background process */
/* quarantine (backend/jail/quarantine.c): of one sandbox, and of all in a state directory */
#define CSN_ASIDE_FILES_MAX     1000u
#define CSN_ASIDE_BYTES_MAX     (256ull * 1024u * 1024u) /* allocated, not the length */
#define CSN_ASIDE_ALL_FILES_MAX 10000u
#define CSN_ASIDE_ALL_BYTES_MAX (1024ull * 1024u * 1024u)
#define CSN_ASIDE_COPY_MS       5000u /* time that one handle spends on copying */
/* the gateway: input before the destination of a connection is known */
#define CSN_DNS_NAME_MAX        255u  /* bytes of a name as sent, the root's NUL included */
#define CSN_DNS_QUERY_MAX       4096u /* bytes of one query over TCP; UDP queries are shorter */
#define CSN_DNS_ADDITIONAL_MAX  8u    /* records after the question */
#define CSN_DNS_UDP_MIN         512u
#define CSN_DNS_UDP_MAX         1232u /* fits every path without fragments */
#define CSN_DNS_REPLY_MAX       512u  /* longest answer of the stub */
#define CSN_TLS_RECORD_MAX      16384u
#define CSN_TLS_HELLO_MAX       65536u  /* of one ClientHello */
#define CSN_TLS_PEEK_MAX        131072u /* bytes of the records that carry it */
#define CSN_HTTP_HEAD_MAX       32768u
#define CSN_HTTP_FIELDS_MAX     256u
#define CSN_HTTP_CHUNK_LINE_MAX 256u   /* a chunk's size with its extensions */
#define CSN_HTTP_EXTENSIONS_MAX 16384u /* of all chunks of one body */
#define CSN_HTTP_TRAILER_MAX    8192u
#define CSN_HTTP_INTERIM_MAX    16u /* 1xx answers before the final one */
