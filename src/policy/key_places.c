/* key_places.c: the table of files and directories of a home that hold keys.
 *
 * A row is here if a program stores credentials there by default, or what a user types. It
 * names the smallest file or directory that holds them: .docker/config.json, not .docker, whose
 * other files are of use inside. Left out on purpose:
 *  - names that users choose themselves (.env, secrets/, *.pem): a policy denies them;
 *  - caches, mail and documents: private, but no keys;
 *  - .config/caisson and caisson's state: backend/jail/own_records.c always masks them;
 *  - settings that rarely hold a password and that tools need (.gitconfig, .config/pip). */
#include "policy/key_places.h"

#include <stddef.h>

#define BROWSER "passwords, cookies and logins of a browser"
#define CLOUD   "credentials of a cloud account"
#define FORGE   "tokens of a code host"
#define PACKAGE "tokens of package registries"
#define LOGIN   "user names and passwords"
#define VAULT   "a store of passwords"
#define WALLET  "keys of a wallet"
#define HISTORY "what was typed, passwords included"
#define AGENT   "the login of an agent"
#define CHAT    "logins and messages"
#define SESSION "cookies that give access to a running session"

const csn_key_place csn_key_places[] = {
    /* keys */
    {".ssh", "private keys of ssh"},
    {".putty", "private keys of PuTTY"},
    {".gnupg", "private keys of GnuPG"},
    {".pki", "certificates and private keys"},
    {".config/age", "private keys of age"},
    {".config/sops", "private keys of sops"},
    {".minisign", "private keys of minisign"},
    {".sigstore", "tokens of sigstore"},
    /* stores of passwords */
    {".password-store", VAULT},
    {".local/share/gopass", VAULT},
    {".local/share/keyrings", VAULT},
    {".local/share/kwalletd", VAULT},
    {".gnome2/keyrings", VAULT},
    {".kde/share/apps/kwallet", VAULT},
    {".kde4/share/apps/kwallet", VAULT},
    {".config/keepassxc", VAULT},
    {".config/Bitwarden", VAULT},
    {".config/Bitwarden CLI", VAULT},
    {".config/1Password", VAULT},
    {".config/op", "tokens of 1Password"},
    {".op", "tokens of 1Password"},
    {".vault-token", "the token of Vault"},
    {".lpass", VAULT},
    /* logins by protocol */
    {".netrc", LOGIN},
    {"_netrc", LOGIN},
    {".authinfo", LOGIN},
    {".authinfo.gpg", LOGIN},
    {".pgpass", LOGIN},
    {".my.cnf", LOGIN},
    {".mylogin.cnf", LOGIN},
    {".smbcredentials", LOGIN},
    {".msmtprc", LOGIN},
    {".fetchmailrc", LOGIN},
    {".config/rclone", LOGIN},
    {".config/filezilla", LOGIN},
    {".local/share/remmina", LOGIN},
    {".config/remmina", LOGIN},
    {".config/lftp", LOGIN},
    {".rhosts", "hosts that log in without a password"},
    {".k5login", "users that log in without a password"},
    /* code hosts */
    {".git-credentials", FORGE},
    {".config/git/credentials", FORGE},
    {".config/gh", FORGE},
    {".config/hub", FORGE},
    {".config/glab-cli", FORGE},
    {".config/tea", FORGE},
    {".config/github-copilot", FORGE},
    /* package registries */
    {".npmrc", PACKAGE},
    {".yarnrc.yml", PACKAGE},
    {".pypirc", PACKAGE},
    {".config/pypoetry/auth.toml", PACKAGE},
    {".local/share/uv/credentials", PACKAGE},
    {".cargo/credentials", PACKAGE},
    {".cargo/credentials.toml", PACKAGE},
    {".gem/credentials", PACKAGE},
    {".local/share/gem/credentials", PACKAGE},
    {".bundle/config", PACKAGE},
    {".m2/settings.xml", PACKAGE},
    {".m2/settings-security.xml", PACKAGE},
    {".gradle/gradle.properties", PACKAGE},
    {".ivy2/.credentials", PACKAGE},
    {".sbt/.credentials", PACKAGE},
    {".nuget/NuGet/NuGet.Config", PACKAGE},
    {".composer/auth.json", PACKAGE},
    {".config/composer/auth.json", PACKAGE},
    {".hex/hex.config", PACKAGE},
    {".config/dart/pub-credentials.json", PACKAGE},
    {".pub-cache/credentials.json", PACKAGE},
    {".config/cachix", PACKAGE},
    {".config/nix/netrc", PACKAGE},
    {".huggingface/token", PACKAGE},
    {".cache/huggingface/token", PACKAGE},
    {".cache/huggingface/stored_tokens", PACKAGE},
    {".kaggle", PACKAGE},
    /* containers and clusters */
    {".docker/config.json", "logins of container registries"},
    {".dockercfg", "logins of container registries"},
    {".config/containers/auth.json", "logins of container registries"},
    {".config/helm/registry", "logins of container registries"},
    {".kube", "credentials of clusters"},
    {".minikube/certs", "private keys of a cluster"},
    {".talos", "credentials of clusters"},
    /* clouds */
    {".aws", CLOUD},
    {".azure", CLOUD},
    {".config/gcloud", CLOUD},
    {".oci", CLOUD},
    {".boto", CLOUD},
    {".s3cfg", CLOUD},
    {".mc", CLOUD},
    {".bluemix", CLOUD},
    {".aliyun", CLOUD},
    {".config/doctl", CLOUD},
    {".config/hcloud", CLOUD},
    {".config/scw", CLOUD},
    {".config/linode-cli", CLOUD},
    {".config/netlify", CLOUD},
    {".config/configstore", CLOUD},
    {".config/.wrangler", CLOUD},
    {".wrangler", CLOUD},
    {".fly", CLOUD},
    {".local/share/com.vercel.cli", CLOUD},
    {".local/share/heroku", CLOUD},
    {".terraform.d/credentials.tfrc.json", CLOUD},
    {".terraformrc", CLOUD},
    {".pulumi/credentials.json", CLOUD},
    {".databrickscfg", CLOUD},
    {".snowsql", CLOUD},
    {".snowflake", CLOUD},
    {".ngrok2", CLOUD},
    {".config/ngrok", CLOUD},
    {".config/e2b", CLOUD},
    /* browsers, mail and chat */
    {".mozilla", BROWSER},
    {".librewolf", BROWSER},
    {".config/google-chrome", BROWSER},
    {".config/google-chrome-beta", BROWSER},
    {".config/google-chrome-unstable", BROWSER},
    {".config/chromium", BROWSER},
    {".config/BraveSoftware", BROWSER},
    {".config/microsoft-edge", BROWSER},
    {".config/opera", BROWSER},
    {".config/vivaldi", BROWSER},
    {"snap/firefox", BROWSER},
    {"snap/chromium", BROWSER},
    {".var/app/org.mozilla.firefox", BROWSER},
    {".var/app/org.chromium.Chromium", BROWSER},
    {".var/app/com.google.Chrome", BROWSER},
    {".var/app/com.brave.Browser", BROWSER},
    {".thunderbird", CHAT},
    {".local/share/evolution", CHAT},
    {".config/Slack", CHAT},
    {".config/discord", CHAT},
    {".config/Signal", CHAT},
    {".config/Element", CHAT},
    {".local/share/TelegramDesktop", CHAT},
    /* agents */
    {".claude/.credentials.json", AGENT},
    {".claude.json", AGENT},
    {".codex/auth.json", AGENT},
    {".gemini/oauth_creds.json", AGENT},
    {".gemini/google_accounts.json", AGENT},
    {".qwen/oauth_creds.json", AGENT},
    {".factory/auth.json", AGENT},
    {".local/share/caisson/agents", "the logins of agents that caisson runs"},
    {".local/share/opencode/auth.json", AGENT},
    {".local/share/amp/secrets.json", AGENT},
    {".config/goose/secrets.yaml", AGENT},
    {".config/io.datasette.llm/keys.json", AGENT},
    /* wallets */
    {".bitcoin", WALLET},
    {".electrum", WALLET},
    {".ethereum/keystore", WALLET},
    {".config/solana", WALLET},
    {".foundry/keystores", WALLET},
    /* sessions */
    {".Xauthority", SESSION},
    {".ICEauthority", SESSION},
    {".config/pulse/cookie", SESSION},
    {".local/share/jupyter/runtime", SESSION},
    /* what was typed */
    {".bash_history", HISTORY},
    {".zsh_history", HISTORY},
    {".zhistory", HISTORY},
    {".histfile", HISTORY},
    {".sh_history", HISTORY},
    {".ksh_history", HISTORY},
    {".local/share/fish/fish_history", HISTORY},
    {".config/nushell/history.txt", HISTORY},
    {".config/nushell/history.sqlite3", HISTORY},
    {".local/share/atuin", HISTORY},
    {".python_history", HISTORY},
    {".node_repl_history", HISTORY},
    {".irb_history", HISTORY},
    {".psql_history", HISTORY},
    {".mysql_history", HISTORY},
    {".sqlite_history", HISTORY},
    {".rediscli_history", HISTORY},
    {NULL, NULL},
};

unsigned csn_key_place_count(void)
{
    return (unsigned)(sizeof(csn_key_places) / sizeof(csn_key_places[0])) - 1;
}
