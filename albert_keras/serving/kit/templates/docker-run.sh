#!/bin/sh
# Starts the model server with a port that only this computer can reach. Open it to others only
# behind a proxy that limits requests: deeply nested JSON ends the process. Another folder of the model: MODEL_FOLDER=/path/to/%{model} ./docker-run.sh
given="$MODEL_FOLDER"
[ -z "$given" ] || given="$(cd "$given" && pwd)" || exit 2
cd "$(dirname "$0")" || exit 2
. ./.env
models="${given:-$(cd "$MODEL_FOLDER" && pwd)}" || exit 2
exec docker run --rm --name tensorflow-serving-%{model} --user "$(id -u):$(id -g)" \
  --publish 127.0.0.1:%{rest_port}:8501 \
  --memory %{memory_gib}g --cpus %{cores} \
  --read-only --tmpfs /tmp --cap-drop ALL --security-opt no-new-privileges \
  --env TF_ENABLE_ONEDNN_OPTS=1 \
  --mount "type=bind,source=$models,target=/models/%{model},readonly" \
  --mount "type=bind,source=$PWD,target=/kit,readonly" \
  %{server_image} \
  %{shell_flags}
