"""The files of the kit for Docker Compose and Kubernetes."""

import re

import pytest
import yaml
from google.protobuf import text_format

from albert_keras.serving.kit.server_kit import write_kit
from tests.albert_keras.serving.contract.model import save_contract_model
from tests.albert_keras.serving.contract.protos import MESSAGES

IMAGES = {"tensorflow/serving:2.15.1", "nginx:1.28.0"}


@pytest.fixture(scope="module")
def kit(tmp_path_factory):
    """Returns the kit of a model with `_` in its name."""
    folder = tmp_path_factory.mktemp("kits")
    (folder / "books").mkdir()
    save_contract_model(folder / "books" / "3")
    ports = {"rest_port": 9001, "grpc_port": 9000, "proxy_port": 9002}
    return write_kit(folder / "kit", "my_books", folder / "books", cores=3, memory_gib=7, **ports)


def flags_of_docker(kit):
    return set(re.findall(r"--\w+=\S+", (kit / "docker-run.sh").read_text().split("serving:")[1]))


def test_compose_runs_the_command_of_docker_run(kit):
    services = yaml.safe_load((kit / "compose.yaml").read_text())["services"]
    server = services["model-server"]
    assert set(server["command"]) == flags_of_docker(kit) and len(server["command"]) == 10
    assert server["ports"] == ["127.0.0.1:9000:8500", "127.0.0.1:9001:8501"]
    assert (server["mem_limit"], server["cpus"]) == ("7g", 3)
    assert server["healthcheck"]["test"] == ["CMD", "bash", "/kit/ready.sh"]
    model, _ = server["volumes"]
    assert (model["source"], model["target"]) == ("${MODEL_FOLDER}", "/models/my_books")
    assert {service["image"] for service in services.values()} == IMAGES
    for service in services.values():
        assert service["read_only"] and service["cap_drop"] == ["ALL"]
        assert service["user"] == "${KIT_USER}"
        assert all(volume["read_only"] for volume in service["volumes"])
    assert "\nKIT_USER='1000:1000'\n" in (kit / ".env").read_text()


@pytest.fixture(scope="module")
def cluster(kit):
    """Returns the documents of kubernetes.yaml by their kind."""
    documents = list(yaml.safe_load_all((kit / "kubernetes.yaml").read_text()))
    return {document["kind"]: document for document in documents}


def test_kubernetes_contains_the_files_of_the_kit(kit, cluster):
    assert set(cluster) == {"ConfigMap", "Deployment", "Service", "NetworkPolicy"}
    assert {one["metadata"]["name"] for one in cluster.values()} == {"serving-my-books"}
    data = cluster["ConfigMap"]["data"]
    for name in ("models.config", "batching.config", "monitoring.config", "ready.sh", "limits.js"):
        assert data[name].strip() == (kit / name).read_text().strip()
    text_format.Parse(data["models.config"], MESSAGES["ModelServerConfig"]())
    own = (kit / "nginx.conf").read_text().strip()
    in_pod = own.replace("127.0.0.1:9002", "8080").replace("127.0.0.1:9001", "127.0.0.1:8501")
    assert data["nginx.conf"].strip() == in_pod


def test_pods_are_confined_and_probed(kit, cluster):
    pod = cluster["Deployment"]["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["runAsUser"] > 0
    server, proxy = pod["containers"]
    assert set(server["args"]) == flags_of_docker(kit)
    assert {server["image"], proxy["image"]} == IMAGES
    assert server["resources"]["limits"] == {"cpu": "3", "memory": "7Gi"}
    assert server["readinessProbe"]["exec"]["command"] == ["bash", "/kit/ready.sh"]
    assert proxy["readinessProbe"]["httpGet"]["path"] == "/v1/models/my_books"
    mounts = {one["name"]: one for one in server["volumeMounts"]}
    assert mounts["models"] == {
        "name": "models",
        "mountPath": "/models/my_books",
        "readOnly": True,
    }
    volumes = {one["name"]: one for one in pod["volumes"]}
    assert volumes["models"]["persistentVolumeClaim"]["readOnly"]
    for container in (server, proxy):
        assert {"startupProbe", "readinessProbe", "livenessProbe"} - set(container) <= {
            "startupProbe"
        }
        assert container["securityContext"]["readOnlyRootFilesystem"]
        assert not container["securityContext"]["allowPrivilegeEscalation"]
        assert container["resources"]["requests"] and container["resources"]["limits"]


def test_only_the_proxy_is_reached_in_a_cluster(cluster):
    labels = cluster["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert cluster["Deployment"]["spec"]["selector"]["matchLabels"] == labels
    assert cluster["Service"]["spec"]["selector"] == labels
    assert cluster["Service"]["spec"]["ports"] == [{"port": 80, "targetPort": "http"}]
    policy = cluster["NetworkPolicy"]["spec"]
    assert policy["podSelector"]["matchLabels"] == labels
    assert policy["ingress"] == [{"ports": [{"port": "http"}]}]
