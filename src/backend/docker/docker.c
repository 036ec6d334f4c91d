/* docker.c: the docker backend: a container of an engine on this machine, Docker or Podman.
 *
 * Contains the operations and options. The engine provides the isolation: a container shares
 * this machine's kernel. */
#include <stdlib.h>
#include <unistd.h>

#include "backend/docker/docker.h"
#include "backend/docker/export.h"
#include "base/cleanup.h"
#include "base/error.h"

static const char *const credentials[] = {"DOCKER_HOST", NULL};

static void docker_release(csn_remote *r)
{
    csn_docker *d = csn_docker_of(r);

    if (!d)
        return;
    if (d->stdin_fd >= 0)
        close(d->stdin_fd);
    pthread_mutex_destroy(&d->lock);
    csn_docker_mounts_release(d);
    free(d->socket);
    free(d->container);
    free(d->user);
    free(d);
    r->data = NULL;
}

const csn_remote_provider csn_docker_provider = {
    .name = "docker",
    .credentials = credentials,
    .flags = CSN_REMOTE_STDIN,
    .create = csn_docker_create,
    .connect = csn_docker_connect,
    .write_record = csn_docker_write_record,
    .destroy = csn_docker_destroy,
    .run = csn_docker_run,
    .upload = csn_docker_upload,
    .extend = csn_docker_extend,
    .release = docker_release,
};

#define LAYERS(files_status, files_text)                                                       \
    {                                                                                          \
        {"isolation", "on",                                                                    \
         "a container: namespaces, system-call filter and control group of the engine; the "   \
         "kernel is this machine's"},                                                          \
            {"privileges", "on", "no capabilities, no new privileges, no device"},             \
            {"files", files_status, files_text},                                               \
            {"processes", "on",                                                                \
             "timeout and cancel end whole trees, found by an id in their environment"},       \
            {"network", "on", "none; with 'all' the engine's bridge, without rules"},          \
            {"lifetime", "on",                                                                 \
             "not detached: ends with its owner; detached: at its lifetime, if it has one"},   \
    }
static const csn_layer layers[] =
    LAYERS("on", "file calls act inside the container; no directory of this host is shared");
static const csn_layer layers_shared[] =
    LAYERS("weaker", "the named host directories are mounted; files that the host may run "
                     "later are not protected");

static csn_status check_image(const csn_config *c, csn_error **err)
{
    const char *image = csn_docker_image(c);

    if (!image) {
        csn_status st = csn_fail(err, CSN_INVALID, "backend 'docker' needs an image");
        return csn_error_advise(st, err,
                                "name an image that the engine has: --image, \"image\" in the "
                                "configuration, or CAISSON_DOCKER_IMAGE");
    }
    if (!csn_docker_image_valid(image))
        return csn_fail(err, CSN_INVALID, "'%.100s' is not a valid image name", image);
    return CSN_OK;
}

static csn_status docker_check(const csn_config *c, csn_error **err)
{
    csn_docker d = {.socket = NULL};
    csn_status st = check_image(c, err);

    if (st == CSN_OK)
        st = csn_docker_socket(&d.socket, err);
    if (st == CSN_OK)
        st = csn_docker_mounts(&d, c, err);
    csn_docker_mounts_release(&d);
    free(d.socket);
    return st;
}

static csn_status docker_begin(const csn_config *config, const char *id, bool connect,
                               void **ret_state, csn_error **err)
{
    csn_autofree char *path = NULL;
    void *state = NULL;

    csn_status st = csn_docker_socket(&path, err);
    if (st == CSN_OK)
        st = csn_remote_new(&csn_docker_provider, config, id, path, connect, &state, err);
    if (st < 0 || !state)
        return st;
    csn_docker *d = calloc(1, sizeof(*d));
    if (!d) {
        csn_remote_close(state);
        return csn_fail(err, CSN_NOMEM, "open");
    }
    d->socket = CSN_STEAL(path);
    d->stdin_fd = -1;
    pthread_mutex_init(&d->lock, NULL);
    ((csn_remote *)state)->data = d;
    st = connect ? CSN_OK : csn_docker_mounts(d, config, err);
    if (st < 0)
        csn_remote_close(state);
    else
        *ret_state = state;
    return st;
}

static csn_status docker_open(const csn_config *config, const char *id, void *register_data,
                              void **ret_state, csn_error **err)
{
    (void)register_data;
    return docker_begin(config, id, false, ret_state, err);
}

static csn_status docker_connect(const csn_config *config, const char *id, void *register_data,
                                 void **ret_state, csn_error **err)
{
    (void)register_data;
    return docker_begin(config, id, true, ret_state, err);
}

static csn_status docker_info(void *state, csn_info_result *ret, csn_error **err)
{
    const csn_remote *r = state;
    bool shared = r->config->workspace || r->config->workspaces;

    ret->layers = shared ? layers_shared : layers;
    ret->layer_count = sizeof(layers) / sizeof(layers[0]);
    if (csn_docker_of(r)->mount_count > 0)
        ret->workspace = csn_docker_of(r)->mounts[0].host;
    return csn_remote_info(state, ret, err);
}

static const csn_backend_ops ops = {
    .size = sizeof(ops),
    .caps = CSN_CAP_LAZY | CSN_CAP_OWNED | CSN_CAP_CODES,
    .name = "docker",
    .isolation = "container",
    .options = CSN_DOCKER_OPTIONS,
    .check = docker_check,
    .open = docker_open,
    .connect = docker_connect,
    CSN_REMOTE_OPS,
    .processes = &csn_remote_process_ops,
    .extend = csn_remote_extend,
    .info = docker_info,
};

const csn_backend_ops *csn_docker_backend(void)
{
    return &ops;
}
