#!/bin/sh
# For another server: ./curl.sh http://HOST:PORT/v1/models/%{model}
model="${1:-http://127.0.0.1:%{rest_port}/v1/models/%{model}}"
set -ex
curl --fail-with-body --silent --show-error "$model"
%{curl_requests}
