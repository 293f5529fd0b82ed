import torch, torchvision, sys
try:
    import safetensors.torch as st
except ImportError as e:
    print('no safetensors', e); sys.exit()
m=torchvision.models.resnet18()
torch.save({"state_dict": {"module."+k:v for k,v in m.state_dict().items()}}, "resnet18.pth")
